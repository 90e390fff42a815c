package inbox

import (
	"context"

	"example.com/twinbox/engine/inbox/poison"
)

// attempt checks and applies as many of the items as may share a transaction, and returns those. With an error, nothing
// of them is committed. An item that is not even to be applied ends them and is not one of them; it has the reason.
func (d *deliverer) attempt(ctx context.Context, items []*item) (tried []*item, err error) {
	attempt, err := d.beginAttempt(ctx, items)
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
	tried = d.reader.check(items)
	relevant := d.engine.order.relevant(tried)
	if len(relevant) == 0 {
		return tried, nil
	}
	if p := items[0].partition; p != nil {
		p.upTo = tried[len(tried)-1].last()
	}
	err = d.engine.apply(ctx, relevant)
	applied = err == nil
	return tried, err
}

// beginAttempt finds out how many of the items may share an attempt, and waits until it may run.
func (d *deliverer) beginAttempt(ctx context.Context, items []*item) (poison.Attempt, error) {
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
	return p.Begin(ctx, records, func(ctx context.Context, n int) (bool, error) {
		return d.engine.ids.allProcessed(ctx, d.cfg.Pool, items[:n])
	})
}
