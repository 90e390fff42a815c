package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/deadletter"
	"example.com/twinbox/internal/failure"
)

// GapPolicy says what a versioned consumer does with an event whose predecessor it has not applied.
type GapPolicy string

const (
	// GapAllow applies it: right where each event carries the whole state. The default.
	GapAllow GapPolicy = "allow"
	// GapWait tries again for GapWait, in which another owner of the partition or a replay may apply the predecessor,
	// and then parks. The partition waits meanwhile.
	GapWait GapPolicy = "wait"
	// GapPark parks the event at once: right where an event says only what changed.
	GapPark GapPolicy = "park"
)

func (p GapPolicy) valid() bool { return p == GapAllow || p == GapWait || p == GapPark }

// onGap is the policy for the event's type.
func (in *Inbox) onGap(it *item) GapPolicy {
	if own := in.cfg.OnGapOf(it.event.Type); own != "" {
		return own
	}
	return in.cfg.OnGap
}

var (
	errGap    = errors.New("an earlier version of the key is missing")
	errBehind = errors.New("an earlier event of the key is parked")
	errMoved  = failure.AsTransient(errors.New("another transaction applied an event of the key meanwhile"))
)

// decide keeps the order of the keys: of the items that are new it finds those that must not run now. It follows the
// items in order, so that an event sees what the ones before it in the same batch change.
func (in *Inbox) decide(ctx context.Context, tx pgx.Tx, items []*item, s *state) error {
	if err := in.keepHolders(ctx, tx, items, s); err != nil {
		return err
	}
	var moved moves
	var parked []*item
	for i, it := range items {
		if it.outcome != Applied {
			continue
		}
		if it.outcome = in.follow(it, s, &moved); it.outcome == waits {
			return &itemError{i, errGap}
		}
		if it.outcome == Parked || it.outcome == Gap {
			parked = append(parked, it)
		}
	}
	if len(parked) > 0 {
		if err := in.park(ctx, tx, parked); err != nil {
			return err
		}
	}
	return in.advance(ctx, tx, &moved)
}

// waits is the outcome of an event that may still be in order when it is tried again. It never leaves the package.
const waits Outcome = "waits"

// follow finds the event's place behind what its key has seen.
func (in *Inbox) follow(it *item, s *state, moved *moves) Outcome {
	key, version := it.event.Subject, it.event.Version
	if first, blocked := s.parked[key]; blocked && (version == 0 || version > first) {
		s.parked[key] = min(first, version) // its letter holds the key too
		return Parked
	}
	if !in.cfg.Versioned || version == 0 {
		return Applied
	}
	known := s.watermarks[key]
	switch policy := in.onGap(it); {
	case version <= known:
		return Stale
	case version == known+1 || policy == GapAllow:
		moved.note(key, known, version)
		s.watermarks = with(s.watermarks, key, version)
		return Applied
	case policy == GapWait && !it.waited:
		return waits
	}
	s.parked = with(s.parked, key, version)
	return Gap
}

func with(m map[string]int64, key string, number int64) map[string]int64 {
	if m == nil {
		m = make(map[string]int64)
	}
	m[key] = number
	return m
}

const markParked = `
update public.inbox set metadata = metadata || jsonb_build_object('outcome', p.outcome)
from unnest($2::text[], $3::timestamptz[], $4::text[]) as p (id, place, outcome)
where consumer = $1 and event_id = p.id and event_time = p.place`

// park files the records in order. Their inbox rows stay: a redelivery is a duplicate, and what takes a parked record
// up again knows it by its dead letter.
func (in *Inbox) park(ctx context.Context, tx pgx.Tx, items []*item) error {
	var ids, outcomes []string
	var places []time.Time
	for _, it := range items {
		ids, places = append(ids, it.entry.id), append(places, it.entry.place)
		outcomes = append(outcomes, string(it.outcome))
		l := it.letter()
		l.parked = true
		reason := &codedError{CodeGap, errGap}
		if it.outcome == Parked {
			reason = &codedError{CodeParked, errBehind}
		}
		l.failed(reason, time.Now())
		sql, args, err := deadletter.Insertion(in.filed(l, true))
		if err == nil {
			err = Queue(ctx, tx, sql, args...)
		}
		if err != nil {
			return fmt.Errorf("insert dead letter: %w", err)
		}
	}
	if err := Queue(ctx, tx, markParked, in.cfg.Consumer, ids, places, outcomes); err != nil {
		return fmt.Errorf("mark parked events: %w", err)
	}
	return nil
}
