package eventing

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/restore"
)

// lookedAt is how many of a partition's newest records are compared with the database. Others may have written behind
// the last of this service's events, but hardly so much to every partition.
const lookedAt = 50

// newest is what the relay compares the database with, to find out what a restore of it took away.
func (s Setup) newest(ctx context.Context) (events []cloudevent.Event, err error) {
	err = s.eachPublished(ctx, lookedAt, func(e cloudevent.Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// eachPublished reads the events that this service can have written: from its source, and such that they keep the
// contract; the last of each partition, or with 0 all.
func (s Setup) eachPublished(ctx context.Context, last int64, do func(cloudevent.Event) error) error {
	for _, topic := range namesOf(s.Topics) {
		if strings.HasPrefix(topic, deadletter.CopyPrefix) {
			continue
		}
		err := kafka.ReadLog(ctx, s.client, topic, last, func(m *message.Message) error {
			event, err := cloudevent.FromMessage(m)
			if err != nil || event.Source != s.Source || event.Version == 0 || s.Validate(event) != nil {
				return nil //nolint:nilerr // another program wrote it
			}
			event.Topic = topic
			return do(event)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writers is whether a process that ran through a restore may add events. A restore in place ends all connections, so
// what is written after it goes over one that was opened since, and each is asked when it is opened: the relay of
// another process may be the one that compares, and has not yet.
type writers struct {
	node    *Node
	refused atomic.Pointer[outbox.CheckError] // what the last connection said
}

// admit checks a new connection of the pool. It never refuses one that only reads.
func (w *writers) admit(ctx context.Context, conn *pgx.Conn) error {
	if refused, is := errors.AsType[*outbox.CheckError](restore.CheckWriters(ctx, conn)); is {
		w.refused.Store(refused)
	}
	return nil // its user meets any other error
}

const askWriters = 500 * time.Millisecond

// await asks again, while writers are refused, until they may go on.
func (w *writers) await(ctx context.Context) error {
	for failure.Sleep(ctx, askWriters) == nil {
		if w.refused.Load() == nil {
			continue
		}
		err := restore.CheckWriters(ctx, w.node.Pool)
		if refused, is := errors.AsType[*outbox.CheckError](err); is || err == nil {
			w.refused.Store(refused)
		}
	}
	return nil
}

// refuse keeps writers of a process that ran through a restore from adding events. While the broker is down the relay
// cannot find out whether there was one, and sign-ups do not wait for it.
func (w *writers) refuse() error {
	if err := w.node.relay.Restored(); err != nil {
		return failure.AsTransient(err) // until an operator has confirmed; no event is to blame
	}
	refused := w.refused.Load()
	if refused == nil || refused.Has(restore.CodeNotCompared) && w.node.dependencies.broker.Down() {
		return nil
	}
	return failure.AsTransient(refused)
}

// check asks whether events may be added. After a restore into another cluster the relay has to put the cursor
// right first, and after one that the broker knows better an operator has to confirm: an event added before that could
// take a number among the old ones and be lost. Only the broker can tell whether there was one; while it is down
// writers do not wait.
func (w *writers) check(ctx context.Context) error {
	err := restore.CheckWriters(ctx, w.node.Pool)
	if err == nil {
		w.refused.Store(nil) // what a connection heard before
	}
	refused, is := errors.AsType[*outbox.CheckError](err)
	if is && refused.Has(restore.CodeNotCompared) && !refused.Has(restore.CodeRestored) &&
		w.node.dependencies.broker.Down() {
		return nil
	}
	return err
}
