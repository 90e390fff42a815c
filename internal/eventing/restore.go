package eventing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/admin"
	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/deadletter"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/restore"
)

// lookedAt is how many of a partition's newest records are compared with the database. Others may have written behind
// the last of this service's events, but hardly so much to every partition.
const lookedAt = 50

// restorer finds out what a restore of the service's database took away, and brings it back from the broker.
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

// comparedAtOnce bounds the events in memory that are not known to be lost.
const comparedAtOnce = 1000

// lost are all events that the broker holds and the database does not know.
func (r *restorer) lost(ctx context.Context, db restore.DB, progress func(int64)) ([]cloudevent.Event, error) {
	var lost, some []cloudevent.Event
	var read int64
	compare := func() error {
		missing, err := restore.Lost(ctx, db, some)
		lost, some = append(lost, missing...), some[:0]
		progress(read)
		return err
	}
	err := r.each(ctx, 0, func(e cloudevent.Event) error {
		some = append(some, e)
		if read++; len(some) < comparedAtOnce {
			return nil
		}
		return compare()
	})
	if err == nil {
		err = compare()
	}
	return lost, err
}

// Confirm implements [admin.Restore].
func (r *restorer) Confirm(
	ctx context.Context, tx pgx.Tx, dryRun bool, progress func(int64),
) (adopted int, err error) {
	lost, err := r.lost(ctx, tx, progress)
	if err != nil {
		return 0, err
	}
	adopted, err = restore.Confirm(ctx, tx, lost, r.node.setup.Adopt)
	if err != nil || dryRun {
		return adopted, err
	}
	// The inbox went back with everything else, the offsets did not: what came in between would never be seen. What the
	// inbox remembers it skips.
	groups := make([]string, len(r.node.consumers))
	for i, c := range r.node.consumers {
		groups[i] = c.group
	}
	setup := r.node.setup
	err = kafka.ForgetOffsets(ctx, setup.Config.Client(setup.Service), groups...)
	if errors.Is(err, kafka.ErrGroupActive) {
		return adopted, fmt.Errorf("%w: %w", admin.ErrConsuming, err)
	}
	if err != nil {
		return adopted, err
	}
	for _, e := range lost {
		setup.Log.WarnContext(ctx, "event taken back from the broker", "event_id", e.ID, "event_type", e.Type,
			"topic", e.Topic, "key", e.Key, "version", e.Version)
	}
	return adopted, nil
}

// refuse keeps writers of a process that ran through a restore from adding events.
func (n *Node) refuse() error {
	if err := n.relay.Restored(); err != nil {
		return failure.AsTransient(err) // until an operator has confirmed; no event is to blame
	}
	return nil
}
