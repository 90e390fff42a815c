package eventing

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/engine/outbox/restore"
)

// lookedAt is how many of a partition's newest records are compared with the database. Others may have written behind
// the last of this service's events, but hardly so much to every partition.
const lookedAt = 50

// restorer finds out what a restore of the service's database took away.
type restorer struct {
	node   *Node
	topics []string // of the service's events
}

func newRestorer(n *Node) *restorer {
	r := &restorer{node: n}
	for _, topic := range n.setup.Topics {
		if !strings.HasPrefix(topic.Name, deadletter.CopyPrefix) {
			r.topics = append(r.topics, topic.Name)
		}
	}
	return r
}

// newest is what the relay compares the database with.
func (r *restorer) newest(ctx context.Context) ([]cloudevent.Event, error) {
	var events []cloudevent.Event
	err := r.each(ctx, lookedAt, func(e cloudevent.Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// each reads the events that this service can have written: from its source, and such that they keep the contract.
func (r *restorer) each(ctx context.Context, last int64, do func(cloudevent.Event) error) error {
	setup := r.node.setup
	for _, topic := range r.topics {
		err := kafka.ReadLog(ctx, setup.Config.Client(setup.Service), topic, last, func(m *message.Message) error {
			event, err := cloudevent.FromMessage(m)
			if err != nil || event.Source != setup.Source || event.Version == 0 || setup.Validate(event) != nil {
				return nil //nolint:nilerr // whoever wrote it, this service did not
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
	refused atomic.Pointer[outbox.CheckError] // what the last connection said
	asked   chan struct{}                     // holds a token while refused is to be asked again
}

// admit asks a new connection of the pool. It never keeps one from those who read.
func (w *writers) admit(ctx context.Context, conn *pgx.Conn) error {
	refused, is := errors.AsType[*outbox.CheckError](restore.CheckWriters(ctx, conn))
	if !is {
		return nil //nolint:nilerr // what else is wrong with it, whoever uses it finds out
	}
	w.refused.Store(refused)
	select {
	case w.asked <- struct{}{}:
	default:
	}
	return nil
}

const askWriters = 500 * time.Millisecond

// awaitWriters asks again until writers may go on.
func (n *Node) awaitWriters(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.writers.asked:
		}
		for n.writers.refused.Load() != nil {
			err := restore.CheckWriters(ctx, n.Pool)
			if refused, is := errors.AsType[*outbox.CheckError](err); is || err == nil {
				n.writers.refused.Store(refused)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(askWriters):
			}
		}
	}
}

// refuse keeps writers of a process that ran through a restore from adding events. While the broker is down nobody can
// say whether there was one, and sign-ups do not wait for it.
func (n *Node) refuse() error {
	if err := n.relay.Restored(); err != nil {
		return failure.AsTransient(err) // until an operator has confirmed; no event is to blame
	}
	refused := n.writers.refused.Load()
	if refused == nil || refused.Has(restore.CodeNotCompared) && n.dependencies.broker.Down() {
		return nil
	}
	return failure.AsTransient(refused)
}
