package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"example.com/twinbox/internal/kafka"
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
	// HandlerLimit is how long a call may take, counted anew after each pause ([progress.Pausing]), before the partition
	// counts as stalled. It ends nothing: a handler has its own timeouts, and they should be shorter. Default 5 min.
	HandlerLimit time.Duration
	// NackBackoff is the wait before what was not acknowledged is handed over again; it doubles for as long as nothing is,
	// up to fifty times as long, each time up to a fifth shorter or longer. Default 100 ms.
	NackBackoff time.Duration
	// UnhealthyAfter is how long Healthy overlooks that nothing is consumed, or that a partition makes no progress
	// although there is something to read. It overlooks what says of itself that it fails for a third of that: a handler,
	// or a broker that gives nothing to read or refuses the membership. Default 30 s.
	UnhealthyAfter time.Duration
	// StopAfter is how long a partition may be stalled, a running handler aside, before the member stops with a
	// [ErrStalled], so that its supervisor starts the process again. Default 5 min.
	StopAfter time.Duration
	// LookEvery is how often a partition is watched for that, and how often one without records looks whether there are
	// some. Default a quarter of UnhealthyAfter.
	LookEvery time.Duration
	// Now is the clock of UnhealthyAfter, StopAfter, [Config.HandlerLimit] and of how long a session lasted. Default
	// time.Now.
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
	c.Batch = cmp.Or(c.Batch, 200)
	c.MaxBytes = cmp.Or(c.MaxBytes, 4_000_000)
	c.HandlerLimit = cmp.Or(c.HandlerLimit, 5*time.Minute)
	c.NackBackoff = cmp.Or(c.NackBackoff, 100*time.Millisecond)
	c.UnhealthyAfter = cmp.Or(c.UnhealthyAfter, 30*time.Second)
	c.StopAfter = cmp.Or(c.StopAfter, 5*time.Minute)
	c.LookEvery = cmp.Or(c.LookEvery, max(c.UnhealthyAfter/4, time.Millisecond))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// maxNackBackoffs is how many times the first wait of a [Config.NackBackoff] the last one is.
const maxNackBackoffs = 50

func (c Config) failingAfter() time.Duration { return c.UnhealthyAfter / 3 }

// Validate reports every problem at once, without connecting anywhere.
func (c Config) Validate() error {
	c = c.WithDefaults()
	problems := []error{c.GroupConfig.Validate()}
	for name, n := range map[string]int{"batch": c.Batch, "max bytes": c.MaxBytes} {
		if n < 1 {
			problems = append(problems, fmt.Errorf("%s: %d is not at least 1", name, n))
		}
	}
	for name, d := range map[string]time.Duration{
		"handler limit": c.HandlerLimit, "unhealthy after": c.UnhealthyAfter, "stop after": c.StopAfter,
		"look every": c.LookEvery,
	} {
		if d < time.Millisecond {
			problems = append(problems, fmt.Errorf("%s: %s is not at least 1ms", name, d))
		}
	}
	if c.NackBackoff < 0 {
		problems = append(problems, fmt.Errorf("nack backoff: %s is negative", c.NackBackoff))
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
