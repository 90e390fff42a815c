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

// GapPolicy says what a versioned consumer does with an event whose predecessor it has not applied. The first event of
// a key is one, too, unless its version is 1.
type GapPolicy string

const (
	// GapPark puts the event and what follows it in its key aside, and takes them up again as soon as the predecessor
	// is applied. The partition goes on meanwhile. Right where an event says only what changed, and the default.
	GapPark GapPolicy = "park"
	// GapWait tries again for Config.GapWait, in which another owner of the partition or a replay may apply the
	// predecessor, and then parks. The partition waits meanwhile, for at most a tenth of its time.
	GapWait GapPolicy = "wait"
	// GapAllow applies the event and skips its predecessors when they come: it declares that every event of the type
	// carries the whole state. A jump of more than Config.MaxJump parks all the same.
	GapAllow GapPolicy = "allow"
)

func (p GapPolicy) valid() bool { return p == GapAllow || p == GapWait || p == GapPark }

// onGap is the policy for the event's type.
func (in *Inbox) onGap(it *item) GapPolicy {
	if own := in.cfg.Handlers.OnGap(it.event.Type); own != "" {
		return own
	}
	return in.cfg.OnGap
}

var (
	errGap    = errors.New("an earlier version of the key is missing")
	errJump   = errors.New("the version is too far above the key's")
	errBehind = errors.New("an earlier event of the key is parked")
	errMoved  = failure.AsTransient(errors.New("another transaction applied an event of the key meanwhile"))
)

// decide keeps the order of the keys: of the items that are new it finds those that must not run now. It follows the
// items in order, so that an event sees what the ones before it in the same batch change.
func (in *Inbox) decide(ctx context.Context, tx pgx.Tx, items []*item, s *state) (err error) {
	if err := in.keepHolders(ctx, tx, items, s); err != nil {
		return err
	}
	var moved moves
	var skipped, parked []*item
	for i, it := range items {
		if it.ignored {
			if err := in.passOver(ctx, tx, it, s, &moved); err != nil {
				return err
			}
			continue
		}
		if it.outcome != Applied {
			continue
		}
		if it.outcome, err = in.follow(ctx, tx, it, s, &moved); err != nil {
			return err
		}
		switch it.outcome {
		case waits:
			return &itemError{i, errGap}
		case Stale:
			skipped = append(skipped, it)
		case Parked, Gap:
			skipped, parked = append(skipped, it), append(parked, it)
		}
	}
	if err := in.park(ctx, tx, parked); err != nil {
		return err
	}
	if err := in.note(ctx, tx, skipped); err != nil {
		return err
	}
	return in.advance(ctx, tx, &moved)
}

// waits is the outcome of an event that may still be in order when it is tried again. It never leaves the package.
const waits Outcome = "waits"

// follow finds the event's place behind what its key has seen.
func (in *Inbox) follow(ctx context.Context, tx pgx.Tx, it *item, s *state, moved *moves) (Outcome, error) {
	key, version := it.event.Key, it.event.Version
	first, blocked := s.parked[key]
	if blocked && (version == 0 || version > first) {
		s.parked[key] = min(first, version) // its letter holds the key too
		return Parked, nil
	}
	if !in.cfg.Versioned || version == 0 {
		return Applied, nil
	}
	known := s.watermarks[key]
	if version <= known {
		return Stale, nil
	}
	if version > known+1 {
		open, err := in.gap(ctx, tx, it, known)
		if err != nil {
			return Failed, err
		}
		if open && !it.waited && in.onGap(it) == GapWait && !it.jumps {
			return waits, nil
		}
		if open {
			s.parked = with(s.parked, key, version)
			return Gap, nil
		}
	}
	in.move(it, s, moved, known)
	return Applied, nil
}

// move raises the key's watermark to the item's version.
func (in *Inbox) move(it *item, s *state, moved *moves, known int64) {
	moved.note(it.event.Key, known, it.event.Version)
	s.watermarks = with(s.watermarks, it.event.Key, it.event.Version)
	_, it.frees = s.parked[it.event.Key] // what is parked is above it, and may have waited for it
}

func with(m map[string]int64, key string, number int64) map[string]int64 {
	if m == nil {
		m = make(map[string]int64)
	}
	m[key] = number
	return m
}

// markOutcomes corrects rows that were written as applied, before it was known what becomes of the event.
const markOutcomes = `
update public.inbox set metadata = metadata || jsonb_build_object('outcome', p.outcome)
from unnest($2::text[], $3::timestamptz[], $4::text[]) as p (id, place, outcome)
where consumer = $1 and event_id = p.id and event_time = p.place`

// note stores the outcomes of events that were recorded in this transaction and are not applied.
func (in *Inbox) note(ctx context.Context, tx pgx.Tx, items []*item) error {
	if len(items) == 0 {
		return nil
	}
	ids, outcomes, places := make([]string, len(items)), make([]string, len(items)), make([]time.Time, len(items))
	for i, it := range items {
		ids[i], outcomes[i], places[i] = it.entry.id, string(it.outcome), it.entry.place
	}
	if err := Queue(ctx, tx, markOutcomes, in.cfg.Consumer, ids, places, outcomes); err != nil {
		return fmt.Errorf("store outcomes: %w", err)
	}
	return nil
}

// park files the records in order. Their inbox rows stay: a redelivery is a duplicate, and what takes a parked record
// up again knows it by its dead letter.
func (in *Inbox) park(ctx context.Context, tx pgx.Tx, items []*item) error {
	for _, it := range items {
		l := it.letter()
		l.parked = true
		l.failed(it.parkedFor(), time.Now())
		sql, args, err := deadletter.Insertion(in.filed(l, true))
		if err == nil {
			err = Queue(ctx, tx, sql, args...)
		}
		if err != nil {
			return fmt.Errorf("insert dead letter: %w", err)
		}
	}
	return nil
}

// parkedFor is why the item is parked, with the code of its dead letter.
func (it *item) parkedFor() *codedError {
	switch {
	case it.outcome == Parked:
		return &codedError{CodeParked, errBehind}
	case it.jumps:
		return &codedError{CodeJump, errJump}
	}
	return &codedError{CodeGap, errGap}
}
