package eventing

import (
	"context"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox/replay"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/operate"
	"example.com/twinbox/internal/outbox/restore"
	"example.com/twinbox/internal/outbox/window"
)

// Operable is a node as its operations see it: what [Setup.Operations] makes them of.
type Operable struct{ *Node }

// Setup is what the node was opened with.
func (n Operable) Setup() Setup { return n.setup }

// LookForPauses asks now, after an operator has paused a consumer or let it go on.
func (n Operable) LookForPauses() { n.gates.Look() }

// Publisher is where republished events go.
func (n Operable) Publisher() operate.Publisher { return n.publisher }

// EachConsumer names the consumers, with what takes up their dead letters.
func (n Operable) EachConsumer(do func(name string, replays *replay.Replayer)) {
	for _, c := range n.consumers {
		do(c.Name, c.replays)
	}
}

// Partitions is how many partitions the topics have that the service writes to, and others that it wrote to once, such
// as those of an earlier name; those that do not exist are missing.
func (n Operable) Partitions(ctx context.Context, others ...string) (map[string]int32, error) {
	return n.setup.partitions(ctx, others...)
}

// Behind are the consumer groups that have not read a topic to its end, with the number of records before each.
func (n Operable) Behind(ctx context.Context, topic string) (map[string]int64, error) {
	return kafka.GroupsBehind(ctx, n.setup.client, topic)
}

// comparedAtOnce bounds the events in memory that are not known to be lost.
const comparedAtOnce = 1000

// lost are all events that the broker holds and the database does not know.
func (s Setup) lost(ctx context.Context, db window.DB, progress func(int64)) ([]cloudevent.Event, error) {
	var lost, some []cloudevent.Event
	var read int64
	compare := func() error {
		missing, _, err := restore.Lost(ctx, db, some)
		lost, some = append(lost, missing...), some[:0]
		progress(read)
		return err
	}
	err := s.eachPublished(ctx, 0, func(e cloudevent.Event) error {
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

// ConfirmRestore brings back the events that the broker holds and the database does not know, and lets the relay go on.
// It returns how many there were. A dry run leaves the broker as it is; the caller rolls tx back. While an instance of
// the service consumes, the error is [kafka.ErrGroupActive].
func (n Operable) ConfirmRestore(
	ctx context.Context, tx pgx.Tx, dryRun bool, progress func(int64),
) (adopted int, err error) {
	lost, err := n.setup.lost(ctx, tx, progress)
	if err != nil {
		return 0, err
	}
	adopted, err = restore.Confirm(ctx, tx, lost, n.setup.Adopt)
	if err != nil || dryRun {
		return adopted, err
	}
	// The inbox went back with everything else, the offsets did not: what came in between would never be seen. What the
	// inbox remembers it skips.
	groups := make([]string, len(n.consumers))
	for i, c := range n.consumers {
		groups[i] = c.group
	}
	if err := kafka.ForgetOffsets(ctx, n.setup.client, groups...); err != nil {
		return adopted, err
	}
	for _, e := range lost {
		n.Log.WarnContext(ctx, "event taken back from the broker", "event_id", e.ID, "event_type", e.Type,
			"correlation_id", e.CorrelationID(),
			"topic", e.Topic, "key", e.Key, "version", e.Version)
	}
	return adopted, nil
}
