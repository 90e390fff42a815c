package inbox

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/failure"
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

// keyOrder keeps the versions of each key in order.
type keyOrder struct {
	consumer  string
	versioned bool
	onDead    DeadPolicy
	onGap     GapPolicy // of types without one of their own
	maxJump   int64
	handlers  Handlers
}

// counts says whether the event has a place in its key's order although no handler wants it.
func (o *keyOrder) counts(it *item) bool { return o.versioned && it.event.Version > 0 }

// relevant are the items that a transaction is for: those that there are handlers for, and those that count in their
// key's order all the same.
func (o *keyOrder) relevant(items []*item) []*item {
	skip := func(it *item) bool { return it.ignored && !o.counts(it) }
	if !slices.ContainsFunc(items, skip) {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), skip)
}

// policy is what to do with a gap before an event of the item's type.
func (o *keyOrder) policy(it *item) GapPolicy {
	if own := o.handlers.OnGap(it.event.Type); own != "" {
		return own
	}
	return o.onGap
}

// passesDead says that a dead letter does not keep back what comes after it.
func (o *keyOrder) passesDead() bool { return o.onDead == DeadPass }

var (
	errGap       = errors.New("an earlier version of the key is missing")
	errJump      = errors.New("the version is too far above the key's")
	errNoVersion = PermanentAs(CodeNoVersion, errors.New("the event carries no version, and others of its key do"))
	errBehind    = errors.New("an earlier event of the key is parked")
	errMoved     = failure.AsTransient(errors.New("another transaction applied an event of the key meanwhile"))
)

// decided is what the order of the keys makes of a transaction's items.
type decided struct {
	skipped []*item // recorded and not applied
	parked  []*item // of these
	moved   moves
}

// decide finds, of the items that are new, those that must not run now. It follows the items in order, so that an event
// sees what the ones before it in the same batch change.
func (o *keyOrder) decide(ctx context.Context, tx pgx.Tx, items []*item, s *state) (d decided, err error) {
	if err := o.lockHolders(ctx, tx, items, s); err != nil {
		return d, err
	}
	for i, it := range items {
		if it.ignored {
			if err := o.passOver(ctx, tx, it, s, &d.moved); err != nil {
				return d, err
			}
			continue
		}
		if it.outcome != Applied {
			continue
		}
		it.outcome, err = o.place(ctx, tx, it, s, &d.moved)
		switch {
		case errors.Is(err, errNoVersion):
			return d, &itemError{i, err}
		case err != nil:
			return d, err
		}
		switch it.outcome {
		case waits:
			return d, &itemError{i, errGap}
		case Stale:
			d.skipped = append(d.skipped, it)
		case Parked, Gap:
			d.skipped, d.parked = append(d.skipped, it), append(d.parked, it)
		}
	}
	return d, nil
}

// waits is the outcome of an event that may still be in order when it is tried again. It never leaves the package.
const waits Outcome = "waits"

// place finds the event's place behind what its key has seen.
func (o *keyOrder) place(ctx context.Context, tx pgx.Tx, it *item, s *state, moved *moves) (Outcome, error) {
	key, version := it.event.Key, it.event.Version
	first, blocked := s.parked[key]
	if blocked && (version == 0 || version > first) {
		s.parked[key] = min(first, version) // its dead letter holds the key too
		return Parked, nil
	}
	known, numbered := s.watermarks[key]
	switch {
	case !o.versioned:
		return Applied, nil
	case version == 0 && numbered: // it may belong before or behind any of them
		return Failed, errNoVersion
	case version == 0: // as the first builds wrote it, and others still may: the partition has the order
		return Applied, nil
	}
	if version <= known {
		return Stale, nil
	}
	if version > known+1 {
		open, err := o.hasGap(ctx, tx, it, known)
		if err != nil {
			return Failed, err
		}
		if open && !it.waited && o.policy(it) == GapWait && !it.jumps {
			return waits, nil
		}
		if open {
			s.parked = with(s.parked, key, version)
			return Gap, nil
		}
	}
	o.move(it, s, moved, known)
	return Applied, nil
}

// move raises the key's watermark to the item's version.
func (o *keyOrder) move(it *item, s *state, moved *moves, known int64) {
	_, there := s.watermarks[it.event.Key]
	moved.note(it.event.Key, known, it.event.Version, there)
	s.watermarks = with(s.watermarks, it.event.Key, it.event.Version)
	_, it.unblocks = s.parked[it.event.Key] // what is parked is above it, and may have waited for it
}

func with(m map[string]int64, key string, number int64) map[string]int64 {
	if m == nil {
		m = make(map[string]int64)
	}
	m[key] = number
	return m
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
