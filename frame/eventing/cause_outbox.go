package eventing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/outbox/operate"
	"example.com/twinbox/engine/outbox/restore"
	"example.com/twinbox/frame/service"
)

// noLeader is asked first of what needs the outbox's status, which the others find then.
func (d *diagnosis) noLeader(ctx context.Context) (cause service.Cause, err error) {
	if d.outbox, err = operate.ReadStatus(ctx, d.node.Pool); err != nil || d.outbox.Leading {
		return cause, err
	}
	s := d.outbox
	cause = service.Cause{
		Code: CauseNoLeader, Command: "twinbox outbox status",
		Figures:  map[string]float64{"events": float64(s.Waiting), "seconds": s.WaitingFor.Seconds()},
		Sentence: "No instance publishes the outbox: none has led yet",
	}
	switch {
	case s.Leader != "" && s.LeaseUntil.Unix() > 0:
		cause.Since = s.LeaseUntil
		cause.Sentence = fmt.Sprintf("No instance publishes the outbox: the lease of %s ran out at %s", s.Leader,
			clock(s.LeaseUntil))
	case s.Leader != "":
		cause.Sentence = fmt.Sprintf("No instance publishes the outbox: %s has given up its lease", s.Leader)
	}
	cause.Sentence += "; " + waiting(s) + "."
	return cause, nil
}

func waiting(s operate.Status) string {
	more := ""
	if s.Waiting == operate.MaxWaiting {
		more = " or more"
	}
	return fmt.Sprintf("%d%s %s", s.Waiting, more, verb(s.Waiting, "event waits", "events wait"))
}

func (d *diagnosis) restoreWaits(ctx context.Context) (service.Cause, error) {
	figures := map[string]float64{"events": float64(d.outbox.Waiting)}
	at, err := restore.ReadStanding(ctx, d.node.Pool)
	switch {
	case err != nil:
		return service.Cause{}, err
	case at.Restored != "":
		return service.Cause{
			Code: CauseRestoreWaits, Figures: figures, Command: "twinbox outbox confirm-restore",
			Sentence: "Nothing is published until the restore of the database is confirmed: " +
				failure.Cut(at.Restored, maxSaid) + ".",
		}, nil
	case d.outbox.Restoring:
		return service.Cause{
			Code: CauseRestoreWaits, Figures: figures, Command: "twinbox outbox status",
			Sentence: "What a restore of the database left is still being published; " + waiting(d.outbox) + ".",
		}, nil
	}
	return service.Cause{}, nil
}

// patience is after how long what waits is asked about: on a healthy service it has gone on by then.
const (
	outboxPatience  = time.Second
	outboxSilence   = 5 * time.Second
	readingPatience = 2 * time.Second
	handlerPatience = 2 * time.Second
	lagPatienceAge  = 5 * time.Second
)

// relayRefuses is a topic with another number of partitions than its keys are spread over: the leader publishes nothing
// until that is confirmed. Any instance finds it, as soon as an event waits for it.
func (d *diagnosis) relayRefuses(ctx context.Context) (service.Cause, error) {
	if d.outbox.WaitingFor < outboxPatience {
		return service.Cause{}, nil
	}
	spread, err := operate.TopicPartitions(ctx, d.node.Pool)
	if err != nil {
		return service.Cause{}, err
	}
	found, err := topicsOf(d.node.setup).Partitions(ctx)
	if err != nil {
		return service.Cause{}, err
	}
	for _, topic := range slices.Sorted(maps.Keys(found)) {
		if was, seen := spread[topic]; seen && was != found[topic] {
			return service.Cause{
				Code: CauseRelayRefuses, Command: "twinbox outbox topics",
				Figures: map[string]float64{"events": float64(d.outbox.Waiting), "partitions": float64(found[topic])},
				Sentence: fmt.Sprintf("Nothing is published until the partitions of %s are confirmed: it has %d, and its keys "+
					"are spread over %d; %s.", topic, found[topic], was, waiting(d.outbox)),
			}, nil
		}
	}
	return service.Cause{}, nil
}

func (d *diagnosis) keysParked(ctx context.Context) (service.Cause, error) {
	parked, err := operate.Parked(ctx, d.node.Pool, 1)
	if err != nil || len(parked) == 0 {
		return service.Cause{}, err
	}
	status := d.outbox
	if status.ParkedKeys == 0 { // it was parked since
		if status, err = operate.ReadStatus(ctx, d.node.Pool); err != nil || status.ParkedKeys == 0 {
			return service.Cause{}, err
		}
	}
	first, keys, events := parked[0], status.ParkedKeys, status.HeldEvents
	cause := service.Cause{
		Code: CauseKeysParked, Since: first.ParkedAt, Command: "twinbox outbox status",
		Figures: map[string]float64{"keys": float64(keys), "events": float64(events)},
		Sentence: fmt.Sprintf("%s %s parked and %s %s; of the first, for %s since %s, the broker says: %s.",
			several(keys, "key"), verb(keys, "is", "are"), verb(keys, "holds", "hold"), several(events, "event"), first.Topic,
			clock(first.ParkedAt), failure.Cut(first.Reason, maxSaid)),
	}
	if first.Permanent {
		cause.Command = "twinbox outbox release"
	}
	return cause, nil
}

// relayAtLimit holds where more waits than one call takes and has waited for a second, or anything for longer than any
// poll. A second look tells a backlog from an event that was just on its way.
func (d *diagnosis) relayAtLimit(ctx context.Context) (service.Cause, error) {
	if !d.overdue(d.outbox) {
		return service.Cause{}, nil
	}
	again, err := operate.ReadStatus(ctx, d.node.Pool)
	if err != nil || !d.overdue(again) {
		return service.Cause{}, err
	}
	cause := service.Cause{
		Code: CauseRelayAtLimit, Since: *again.OldestWaiting, Command: "twinbox outbox status",
		Figures: map[string]float64{"events": float64(again.Waiting), "seconds": again.WaitingFor.Seconds()},
		Sentence: fmt.Sprintf("The relay publishes less than is added: %s, the oldest since %s.", waiting(again),
			clock(*again.OldestWaiting)),
	}
	if silent := d.node.relay.Healthy(ctx); silent != nil && !errors.Is(silent, context.Canceled) {
		cause.Sentence = fmt.Sprintf("The relay gets nothing published: %s; %s.", failure.Cut(silent.Error(), maxSaid),
			waiting(again))
	}
	return cause, nil
}

func (d *diagnosis) overdue(s operate.Status) bool {
	batch := int64(d.node.setup.Config.Outbox.BatchSize)
	return s.Waiting > batch && s.WaitingFor > outboxPatience || s.Waiting > 0 && s.WaitingFor > outboxSilence
}
