package inbox

import (
	"context"

	"example.com/twinbox/internal/inbox/poison"
)

// attempt checks and applies as many of the items as may share a transaction, and returns those. With an error, nothing
// of them is committed. An item that is not even to be applied ends them and is not one of them; it has the reason.
func (in *Inbox) attempt(ctx context.Context, items []*item) (tried []*item, err error) {
	attempt, err := in.beginAttempt(ctx, items)
	if err != nil {
		return items, err
	}
	applied := false
	defer func() { attempt.End(applied) }()
	items = items[:attempt.N]
	switch {
	case attempt.Known:
		return items, nil
	case attempt.Died != nil:
		return items, attempt.Died
	}
	tried = in.check(items)
	heard := in.heard(tried)
	if len(heard) == 0 {
		return tried, nil
	}
	if p := items[0].partition; p != nil {
		p.upTo = tried[len(tried)-1].last()
	}
	err = in.apply(ctx, heard)
	applied = err == nil
	return tried, err
}

// beginAttempt finds out how many of the items may share an attempt, and waits until it may run.
func (in *Inbox) beginAttempt(ctx context.Context, items []*item) (poison.Attempt, error) {
	p := items[0].partition
	if p == nil {
		return poison.Attempt{N: len(items)}, nil
	}
	if attempt, begun := p.TryBegin(len(items)); begun {
		return attempt, nil
	}
	records := make([]poison.Record, len(items))
	for i, it := range items {
		records[i] = poison.Record{First: it.origin.Offset, Last: it.last(), Ignored: it.ignored}
	}
	return p.Begin(ctx, records, func(ctx context.Context, n int) (bool, error) { return in.known(ctx, items[:n]) })
}

// heard are the items that a transaction is for: those that there are handlers for, and those that count in their key's
// order all the same.
func (in *Inbox) heard(items []*item) []*item {
	for i, it := range items {
		if !it.ignored || in.orders(it) {
			continue
		}
		heard := append(make([]*item, 0, len(items)), items[:i]...)
		for _, it := range items[i:] {
			if !it.ignored || in.orders(it) {
				heard = append(heard, it)
			}
		}
		return heard
	}
	return items
}
