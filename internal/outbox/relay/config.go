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

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox"
)

// Config of a relay. Connect and Publisher are required; zero means default.
type Config struct {
	// Connect opens connections to the database: to its primary, directly, not through a pooler of transactions.
	Connect func(context.Context) (*pgx.Conn, error)

	// Publisher takes the events, a page at a time and a topic per call. Its nil means: durably taken, in the order of
	// the call. An error may say more than that all failed: see [FailedIndexes] and [Permanent]. If it is an
	// [EventPublisher] or a [ContextPublisher], that is called instead of Publish.
	Publisher message.Publisher
	// Destination, if set, is what is known of the publisher's server: while it is down no key is set aside for its
	// sake, and a pause ends when it is back.
	Destination Destination
	// Topics, if set, says how many partitions the topics have; those that do not exist yet are missing in its answer.
	// Counts are recorded when first seen. With another count later the relay publishes nothing until an operator has
	// confirmed it, see operate.ConfirmPartitions: keys would go to other partitions, past their own events.
	Topics func(context.Context) (map[string]int32, error)
	// TopicsEvery is the pause between questions to Topics. Default 10 s.
	TopicsEvery time.Duration
	// ConfirmEvery is the pause between checks while nothing is published until an operator has acted. Default 1 s.
	ConfirmEvery time.Duration

	// Published, if set, returns the newest events that the broker holds, with their topics, some hundred of each
	// partition. It finds a restore of an older state of the database, see package restore; only events that this outbox
	// can have written belong there. While it fails, nothing is published.
	Published func(context.Context) ([]cloudevent.Event, error)
	// Wake is [outbox.Outbox.Wake], or nil where nothing is written in this process.
	Wake <-chan struct{}
	// Listen lets relays tell each other of commits: one that follows notifies, at most 50 times a second, and the one
	// that leads hears it on its session. Without it the leader finds what other processes commit when it polls. Nothing
	// rests on a notification.
	Listen bool
	// Scheduled, if set, adds what was scheduled with it, or with another one of this database, when it is due; see
	// [outbox.Outbox.Schedule]. Without it that waits until a relay leads that has it.
	Scheduled *outbox.Outbox
	// PollMin and PollMax bound the pause between polls: it doubles from the one to the other while nothing is found.
	// Default 5 ms and 250 ms.
	PollMin, PollMax time.Duration
	// RoundEvery is the least time from the beginning of a round to that of the next while this process commits events
	// without a rest: those of that time share a round's statements. The first event after a rest does not wait, nor do
	// those of its round. Default 3 ms.
	RoundEvery time.Duration

	// Spans tells of each call in which there is an event of a sampled request. Default none.
	Spans *cloudevent.Spans

	// Name is what the cursor row shows of a leader. Default host and process id.
	Name string
	// Lease is for how long a leader leads after its last statement. A follower waits for its end only if the leader
	// hangs or is cut off; that a leader's session has ended, by kill -9 for one, it sees within 650 ms. Default 15 s.
	Lease time.Duration
	// PublishTimeout limits a call of Publish. It must be shorter than the lease. Default 10 s.
	PublishTimeout time.Duration

	// BatchSize limits a page, in events. Default 1,000.
	BatchSize int

	// RecordEvery is how long events that were taken wait to be recorded as published while more are being sent; at the
	// end of a backlog they wait for 25 ms at most. Default 100 ms.
	RecordEvery time.Duration
	// MaxUnrecorded limits the events that were taken, or are in the air, and are not recorded: a crash sends that many
	// again. Less than two pages counts as two pages. Default 10,000.
	MaxUnrecorded int

	// RetryMin and RetryMax bound the pause before a failed record is sent again. Default 50 ms and 5 s.
	RetryMin, RetryMax time.Duration
	// ParkedRetryMax bounds the pause before a key that was set aside is tried again. The others wait while it is, for
	// one call of Publish at most, and for a tenth of the relay's time at most: slow failures make the pauses longer, and
	// so do more failing keys than a page takes. They are tried in the order in which they became due. Default 15 s.
	ParkedRetryMax time.Duration
	// Attempts is how often a record is sent before its key is set aside so that others can go on. Default 3.
	Attempts int
	// Patience is how long a page of which nothing is taken is tried again before its keys are set aside: the broker is
	// probably down, and then waiting holds up no other key. A tenth of it if others are taken. Default 5 s.
	Patience time.Duration

	// PartitionSize is the range of a new partition, in positions. Default 1,000,000.
	PartitionSize int64
	// PartitionsAhead is how many whole partitions lie ahead of the writers: their room if no relay runs. Default 4.
	PartitionsAhead int
	// Retention is how long a wholly published partition is kept, for operate.Republish. Default 72 h.
	Retention time.Duration
	// IDRetention is how long an id that a caller gave is remembered, counted from its first append. It should not be
	// shorter than the time for which consumers keep events' ids: they would get the id again with another payload.
	// Default 240 h.
	IDRetention time.Duration
	// MaintainEvery is the pause between maintenances of the table partitions. Default 30 s.
	MaintainEvery time.Duration

	// MaxSilence is how long nothing may move before [Relay.Healthy] says so. Default one and a half times
	// PublishTimeout, so 15 s: one batch may be lost, and the next one is heard of.
	MaxSilence time.Duration
	// Log is where the relay tells what happens to it. Default nowhere.
	Log *slog.Logger
	// Registerer takes the metrics; send.go lists them. Optional.
	Registerer prometheus.Registerer
}

func (c Config) withDefaults() Config {
	c.PollMin = cmp.Or(c.PollMin, 5*time.Millisecond)
	c.PollMax = cmp.Or(c.PollMax, 250*time.Millisecond)
	c.RoundEvery = cmp.Or(c.RoundEvery, 3*time.Millisecond)
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 10*time.Second)
	c.BatchSize = cmp.Or(c.BatchSize, 1000)
	c.RecordEvery = cmp.Or(c.RecordEvery, 100*time.Millisecond)
	c.MaxUnrecorded = cmp.Or(c.MaxUnrecorded, 10_000)
	c.RetryMin = cmp.Or(c.RetryMin, 50*time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, 5*time.Second)
	c.ParkedRetryMax = cmp.Or(c.ParkedRetryMax, 15*time.Second)
	c.Attempts = cmp.Or(c.Attempts, 3)
	c.Patience = cmp.Or(c.Patience, 5*time.Second)
	c.PartitionSize = cmp.Or(c.PartitionSize, 1_000_000)
	c.PartitionsAhead = cmp.Or(c.PartitionsAhead, 4)
	c.Retention = cmp.Or(c.Retention, 72*time.Hour)
	c.IDRetention = cmp.Or(c.IDRetention, 240*time.Hour)
	c.TopicsEvery = cmp.Or(c.TopicsEvery, 10*time.Second)
	c.ConfirmEvery = cmp.Or(c.ConfirmEvery, time.Second)
	c.MaintainEvery = cmp.Or(c.MaintainEvery, 30*time.Second)
	c.MaxSilence = cmp.Or(c.MaxSilence, c.PublishTimeout*3/2)
	c.Destination = cmp.Or[Destination](c.Destination, noDestination{})
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s/%d", cmp.Or(host, "unknown"), os.Getpid())
	}
	return c
}

func (c Config) validate() error {
	var e outbox.CheckError
	e.RefuseIf(c.Connect == nil, "database", "Connect is not set")
	e.RefuseIf(c.Publisher == nil, "publisher", "no publisher")
	e.RefuseIf(c.PublishTimeout < 0 || c.Lease <= c.PublishTimeout, "publish_timeout",
		fmt.Sprintf("%s is not shorter than the lease of %s", c.PublishTimeout, c.Lease))
	e.RefuseIf(c.PollMin < 0 || c.PollMax < c.PollMin || c.PollMax > c.Lease/3, "poll",
		fmt.Sprintf("%s to %s is not a range up to a third of the lease of %s", c.PollMin, c.PollMax, c.Lease))
	e.RefuseIf(c.RoundEvery < 0 || c.RoundEvery > c.Lease/3, "round_every",
		fmt.Sprintf("%s is not within 0 and a third of the lease of %s", c.RoundEvery, c.Lease))
	e.RefuseIf(c.RetryMin < 0 || c.RetryMax < c.RetryMin || c.ParkedRetryMax < c.RetryMin, "retry",
		fmt.Sprintf("%s to %s is not a range", c.RetryMin, c.RetryMax))
	e.RefuseIf(c.BatchSize < 1 || c.BatchSize > maxBatchSize, "batch_size",
		fmt.Sprintf("%d is not within 1 to %d", c.BatchSize, maxBatchSize))
	e.RefuseIf(c.RecordEvery < 0 || c.MaxUnrecorded < 1 || c.MaxUnrecorded > maxBatchSize, "unrecorded",
		fmt.Sprintf("%s and %d are not a time and 1 to %d events", c.RecordEvery, c.MaxUnrecorded, maxBatchSize))
	e.RefuseIf(c.Attempts < 1 || c.Patience < 0, "attempts", "attempts or patience is not positive")
	e.RefuseIf(c.PartitionSize < 1 || c.PartitionsAhead < 1 || c.MaintainEvery < 0, "partitions",
		"size, number ahead or interval is not positive")
	e.RefuseIf(c.Retention < time.Minute, "retention", fmt.Sprintf("%s is shorter than a minute", c.Retention))
	e.RefuseIf(c.IDRetention < time.Minute, "id_retention", fmt.Sprintf("%s is shorter than a minute", c.IDRetention))
	e.RefuseIf(c.MaxSilence <= c.PublishTimeout, "max_silence",
		fmt.Sprintf("%s is not longer than the publish timeout of %s", c.MaxSilence, c.PublishTimeout))
	return e.Err()
}

const (
	maxBatchSize = 100_000
	// batchBytes limits the payloads of a page, of which four are in memory at most.
	batchBytes = 8 << 20
)

// What the relay asks of a publisher beside [message.Publisher], all of it optional.

// ContextPublisher is called instead of Publish: its context ends when the call must.
type ContextPublisher interface {
	PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error
}

// EventPublisher is called instead of both: it takes the events as they are read, and must send what it would send of
// their [cloudevent.Event.Message]. That spares a map per event, which is most of what a message costs. The events must
// not be changed, and not be kept after the call, unless it failed with an unknown outcome.
type EventPublisher interface {
	PublishEvents(ctx context.Context, topic string, events ...*cloudevent.Event) error
}

// FailedIndexes is what a publisher's error has if it knows which messages of the call failed: their indexes and why.
// All others are taken. A key's later messages in the call must not have been taken before its first failed one.
type FailedIndexes interface {
	error
	FailedIndexes() map[int]error
}

// Permanent is what an error has that another attempt cannot cure: the message is too large, the topic takes none of
// its kind. An error of a whole call that is permanent makes the relay send the messages one by one, to find which one
// it refuses.
type Permanent interface {
	error
	Permanent() bool
}

func isPermanent(err error) bool {
	p, is := errors.AsType[Permanent](err)
	return is && p.Permanent()
}

// Unfinished is what an error has of a message that has not failed: the call ended before its turn, or before the
// answer of a server that is slow. It is sent again, and its key is not parked.
type Unfinished interface {
	error
	Unfinished() bool
}

func isUnfinished(err error) bool {
	u, is := errors.AsType[Unfinished](err)
	return is && u.Unfinished()
}

// messagePublisher makes messages for a publisher that takes no events.
type messagePublisher struct{ message.Publisher }

func (p messagePublisher) PublishEvents(ctx context.Context, topic string, events ...*cloudevent.Event) error {
	messages := make([]*message.Message, len(events))
	for i, e := range events {
		messages[i] = e.Message()
	}
	if p, is := p.Publisher.(ContextPublisher); is {
		return p.PublishContext(ctx, topic, messages...)
	}
	return p.Publish(topic, messages...)
}

// Destination is what is known about the server that the publisher sends to, see [Config].
type Destination interface {
	// Report says that sending failed. It does not block.
	Report(err error)
	// Down is true while the server is known to be down.
	Down() bool
	// Pause waits for d, or less: until the server is back. It returns an error only when ctx has ended.
	Pause(ctx context.Context, d time.Duration) error
}

// noDestination knows nothing.
type noDestination struct{}

func (noDestination) Report(error) {}
func (noDestination) Down() bool   { return false }

func (noDestination) Pause(ctx context.Context, d time.Duration) error {
	return failure.Sleep(ctx, d)
}
