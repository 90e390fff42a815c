package inbox

import (
	"context"
	"fmt"

	"example.com/twinbox/internal/failure"
)

// lookAfter is how many deliveries in a row must have brought nothing new before the next one is looked up first.
const lookAfter = 3

// look asks, in one round trip and without a transaction, whether all the items were processed before. Redeliveries
// come in long runs: after a crash everything since the last committed offset. In such a run a look is all they need,
// since a row that is there stays; outside of one nobody looks. What is not found is not decided here: its insert will.
func (in *Inbox) look(ctx context.Context, items []*item) (all bool, err error) {
	p := items[0].partition
	if p == nil || p.repeats < lookAfter || p.Suspicious() { // then they were looked up, and counts go with a transaction
		return false, nil
	}
	for _, it := range items {
		if it.ignored { // whether its version is counted is in another table
			return false, nil
		}
	}
	return in.known(ctx, items)
}

// known says whether all the items were processed before, with the same payload. If so, that is their outcome.
func (in *Inbox) known(ctx context.Context, items []*item) (all bool, err error) {
	sql, args := in.hashesOf(items)
	rows, err := in.cfg.Pool.Query(ctx, sql, args...)
	if err != nil {
		return false, failure.AsTransient(fmt.Errorf("read inbox rows: %w", err))
	}
	hashes, err := readHashes(rows, items)
	if err != nil {
		return false, failure.AsTransient(err)
	}
	for _, it := range items {
		if it.seen(hashes) != Duplicate {
			return false, nil
		}
	}
	for _, it := range items {
		it.outcome = Duplicate
	}
	return true, nil
}
