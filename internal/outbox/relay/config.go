package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox"
)

// Config of a relay. Connect and Publisher are required; the zero value of another field means its default.
type Config struct {
	// Connect opens connections to the primary, not through a pooler of transactions.
	Connect func(context.Context) (*pgx.Conn, error)
	// Publisher takes the events; nil means durably, in the order of the call. For its errors see [Permanent] and
	// [Unfinished]. A [Log] gets a page of a topic per call, any other publisher one event.
	Publisher message.Publisher
	// Destination is the state of the publisher's server. Optional.
	Destination Destination

	// Wake is [outbox.Outbox.Wake], or nil if this process adds no events.
	Wake <-chan struct{}
	// Listen lets a follower notify the leader of this process's commits.
	Listen bool
	// Scheduled adds scheduled events that are due. Without it they wait for a leader that has one.
	Scheduled *outbox.Outbox
	// PollMax is the longest pause between two looks at the database. Default 250 ms.
	PollMax time.Duration

	// Lease is how long a leader that hangs or is cut off keeps the leadership. A killed one is replaced within 500 ms.
	// Default 15 s.
	Lease time.Duration
	// PublishTimeout limits a call of the publisher. It must be shorter than the lease. Default 10 s.
	PublishTimeout time.Duration
	// BatchSize limits a page, in events: a crash sends one page again. Default 1,000.
	BatchSize int

	// PartitionSize is the range of a new table partition, in positions. Default 1,000,000.
	PartitionSize int64
	// Retention is how long a published table partition is kept, for [Republish]. Default 72 h.
	Retention time.Duration
	// IDRetention is how long a given id is remembered: at least as long as by consumers. Default 240 h.
	IDRetention time.Duration

	// Topics are looked at when a leadership begins: a database that went back may not know them.
	Topics []string
	// HealWithin is the age of lost events from which on a heal needs a confirmation. Default 10 min.
	HealWithin time.Duration
	// GroupTimeout is the consumers' session timeout. In a database that went back the relay waits that long before it
	// looks at the log, and at least twice PublishTimeout. Default 10 s.
	GroupTimeout time.Duration

	// MaxSilence is how long no event may move before [Relay.Healthy] fails. Default 1.5 times PublishTimeout.
	MaxSilence time.Duration
	// Name identifies a leader in the cursor row. Default host and process id.
	Name string
	// Spans makes a span for each call with an event of a sampled request. Default none.
	Spans *event.Spans
	// Log: default none.
	Log *slog.Logger
	// Registerer: optional.
	Registerer prometheus.Registerer

	pollMin    time.Duration // the pause after an event was found; it doubles up to PollMax
	roundEvery time.Duration // between the beginnings of two rounds
	retryMin   time.Duration // the first pause after a failure
	retryMax   time.Duration // the longest; at most a third of the lease

	// attempts is how often a record is sent at least, and patience for how long, before its key is parked.
	attempts       int
	patience       time.Duration
	parkedRetryMax time.Duration
	maintainEvery  time.Duration

	landWithin time.Duration // a former leader's records are on the log by then
	askEvery   time.Duration
	lookAgain  time.Duration
	pointEvery time.Duration
}

func (c Config) withDefaults() Config {
	c.PollMax = cmp.Or(c.PollMax, 250*time.Millisecond)
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 10*time.Second)
	c.BatchSize = cmp.Or(c.BatchSize, 1000)
	c.retryMax = cmp.Or(c.retryMax, min(5*time.Second, c.Lease/3))
	c.parkedRetryMax = cmp.Or(c.parkedRetryMax, 15*time.Second)
	c.attempts = cmp.Or(c.attempts, 3)
	c.patience = cmp.Or(c.patience, 5*time.Second)
	c.PartitionSize = cmp.Or(c.PartitionSize, 1_000_000)
	c.Retention = cmp.Or(c.Retention, 72*time.Hour)
	c.IDRetention = cmp.Or(c.IDRetention, 240*time.Hour)
	c.MaxSilence = cmp.Or(c.MaxSilence, c.PublishTimeout*3/2)
	c.HealWithin = cmp.Or(c.HealWithin, 10*time.Minute)
	c.GroupTimeout = cmp.Or(c.GroupTimeout, 10*time.Second)
	c.landWithin = cmp.Or(c.landWithin, max(2*c.PublishTimeout, c.GroupTimeout))
	c.askEvery = cmp.Or(c.askEvery, 10*time.Second)
	c.lookAgain = cmp.Or(c.lookAgain, 5*time.Second)
	c.pointEvery = cmp.Or(c.pointEvery, time.Second)
	c.Destination = cmp.Or[Destination](c.Destination, noDestination{})
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.pollMin = cmp.Or(c.pollMin, 5*time.Millisecond)
	c.roundEvery = cmp.Or(c.roundEvery, 1500*time.Microsecond)
	c.retryMin = cmp.Or(c.retryMin, 50*time.Millisecond)
	c.maintainEvery = cmp.Or(c.maintainEvery, 30*time.Second)
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s/%d", cmp.Or(host, "unknown"), os.Getpid())
	}
	return c
}

const maxBatchSize = 100_000

func (c Config) validate() error {
	var e CheckError
	e.RefuseIf(c.Connect == nil, "database", "Connect is not set")
	e.RefuseIf(c.Publisher == nil, "publisher", "no publisher")
	e.RefuseIf(c.PublishTimeout < 0 || c.Lease <= c.PublishTimeout, "publish_timeout",
		fmt.Sprintf("%s is not shorter than the lease of %s", c.PublishTimeout, c.Lease))
	e.RefuseIf(c.PollMax < c.pollMin || c.PollMax > c.Lease/3, "poll",
		fmt.Sprintf("%s is not within %s and a third of the lease of %s", c.PollMax, c.pollMin, c.Lease))
	e.RefuseIf(c.BatchSize < 1 || c.BatchSize > maxBatchSize, "batch_size",
		fmt.Sprintf("%d is not within 1 to %d", c.BatchSize, maxBatchSize))
	e.RefuseIf(c.PartitionSize < 1, "partitions", fmt.Sprintf("a size of %d is not positive", c.PartitionSize))
	e.RefuseIf(c.Retention < time.Minute, "retention", fmt.Sprintf("%s is shorter than a minute", c.Retention))
	e.RefuseIf(c.IDRetention < time.Minute, "id_retention", fmt.Sprintf("%s is shorter than a minute", c.IDRetention))
	e.RefuseIf(c.MaxSilence <= c.PublishTimeout, "max_silence",
		fmt.Sprintf("%s is not longer than the publish timeout of %s", c.MaxSilence, c.PublishTimeout))
	return e.Err()
}

// FailedIndexes is an error of a [Log] with a call's failed messages. All others are taken. No message of a key may be
// on the log before the key's first failed one.
type FailedIndexes interface {
	error
	FailedIndexes() map[int]error
}

// Permanent is an error that another attempt cannot cure: the message is too large, for example.
type Permanent interface {
	error
	Permanent() bool
}

func isPermanent(err error) bool {
	p, is := errors.AsType[Permanent](err)
	return is && p.Permanent()
}

// Unfinished is an error of a message whose call ended before the answer. It is sent again, and parks no key.
type Unfinished interface {
	error
	Unfinished() bool
}

func isUnfinished(err error) bool {
	u, is := errors.AsType[Unfinished](err)
	return is && u.Unfinished()
}

// Destination is the state of the publisher's server.
type Destination interface {
	// Report takes a failure to send. It does not block.
	Report(err error)
	// Down is true while the server is known to be down: then no key is parked.
	Down() bool
	// Pause waits for d, or until the server is back. Its only error is that of ctx.
	Pause(ctx context.Context, d time.Duration) error
}

type noDestination struct{}

func (noDestination) Report(error) {}
func (noDestination) Down() bool   { return false }

func (noDestination) Pause(ctx context.Context, d time.Duration) error {
	return failure.Sleep(ctx, d)
}
