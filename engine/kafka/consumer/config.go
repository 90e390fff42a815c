package consumer

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"example.com/twinbox/engine/kafka"
)

// Config is a [GroupConfig] plus what is a [Consumer]'s own. The zero value of a field means its default.
type Config struct {
	kafka.GroupConfig
	// Batch is how many messages one call of the handler gets at most. Default 200.
	Batch int
	// MaxBytes bounds what is held of a partition: the batch under way, and so each batch, and what lies ready behind it.
	// A record counts with its key, value and headers and a few hundred bytes more; a larger one is held by itself.
	// Default 4,000,000.
	MaxBytes int
	// Parallel is for how many partitions at a time a batch that is not full may be handled. The others wait for their
	// turn and gather more, so that under load a batch is a batch and not a record: fewer, larger transactions. Full
	// batches do not count, and a call that lasts longer than 10 ms counts no more, so a handler that waits holds
	// the others up for no longer. Default: as many as there are cores.
	Parallel int
	// HandlerLimit is how long a call may take, counted anew after each pause ([progress.Pausing]), before the partition
	// counts as stalled. It ends nothing: a handler has its own timeouts, and they should be shorter. Default 5 min.
	HandlerLimit time.Duration
	// NackBackoff is the wait before what was not acknowledged is handed over again; it doubles up to MaxNackBackoff
	// for as long as nothing is, each time up to a fifth shorter or longer. Defaults 100 ms and 5 s.
	NackBackoff, MaxNackBackoff time.Duration
	// UnhealthyAfter is how long Healthy overlooks that nothing is consumed, or that a partition makes no progress
	// although there is something to read. Default 30 s.
	UnhealthyAfter time.Duration
	// FailingAfter is the same for what says of itself that it fails: a handler, or a broker that gives nothing to read or
	// refuses the membership. Default a third of UnhealthyAfter.
	FailingAfter time.Duration
	// StopAfter is how long a partition may be stalled, a running handler aside, before the member stops with a
	// [StallError], so that its supervisor starts the process again. Default 5 min.
	StopAfter time.Duration
	// LookEvery is how often a partition is watched for that, and how often one without records looks whether there are
	// some. Default a quarter of UnhealthyAfter.
	LookEvery time.Duration
	// Now is the clock of UnhealthyAfter, FailingAfter, StopAfter, [Config.HandlerLimit] and of how long a
	// session lasted. Default time.Now.
	Now func() time.Time
	// Hooks are called on the way. Default: none.
	Hooks Hooks
	// Positions keeps how far each partition is read in the store that the handler writes to. Default: none, and then
	// nothing tells that what was handled is gone.
	Positions Positions
}

// WithDefaults returns the configuration that is really used.
func (c Config) WithDefaults() Config {
	c.GroupConfig = c.GroupConfig.WithDefaults()
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.NackBackoff, 100 * time.Millisecond},
		{&c.MaxNackBackoff, 5 * time.Second},
		{&c.HandlerLimit, 5 * time.Minute},
		{&c.UnhealthyAfter, 30 * time.Second},
		{&c.StopAfter, 5 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Batch == 0 {
		c.Batch = 200
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 4_000_000
	}
	if c.Parallel == 0 {
		c.Parallel = runtime.GOMAXPROCS(0)
	}
	if c.FailingAfter == 0 {
		c.FailingAfter = max(c.UnhealthyAfter/3, time.Millisecond)
	}
	if c.LookEvery == 0 {
		c.LookEvery = max(c.UnhealthyAfter/4, time.Millisecond)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate reports every problem at once, without connecting anywhere.
func (c Config) Validate() error {
	problems := []error{c.GroupConfig.Validate()}
	c = c.WithDefaults()
	if c.Batch < 1 {
		problems = append(problems, fmt.Errorf("batch: %d is not at least 1", c.Batch))
	}
	if c.Parallel < 1 {
		problems = append(problems, fmt.Errorf("parallel: %d is not at least 1", c.Parallel))
	}
	if c.MaxBytes < 1 {
		problems = append(problems, fmt.Errorf("max bytes: %d is not at least 1", c.MaxBytes))
	}
	for name, d := range map[string]time.Duration{
		"nack backoff": c.NackBackoff, "longest nack backoff": c.MaxNackBackoff, "handler limit": c.HandlerLimit,
		"unhealthy after": c.UnhealthyAfter, "failing after": c.FailingAfter, "stop after": c.StopAfter,
		"look every": c.LookEvery,
	} {
		if d < time.Millisecond {
			problems = append(problems, fmt.Errorf("%s: %s is not at least 1ms", name, d))
		}
	}
	return errors.Join(problems...)
}

// Hooks tell a caller what happens. They run on the member's goroutines and must not block; nil ones are skipped.
type Hooks struct {
	// Assigned is called when a partition starts to be read, from offset; it is negative when the group has committed
	// none, and the oldest record comes first.
	Assigned func(topic string, partition int32, offset int64)
	// Lost is called when a partition is no longer read and none of its messages is being waited for. idle says that
	// none is being worked on either; it is false when the member went on without a handler that had not come to its end.
	Lost func(topic string, partition int32, idle bool)
	// Failed is called when an attempt to consume has failed and will be repeated, with the reason.
	Failed func(err error)
}
