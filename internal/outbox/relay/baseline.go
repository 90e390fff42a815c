package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const topicsSQL = `select distinct topic from public.outbox_key order by topic`

const baselinePointSQL = `insert into public.outbox_point (position, ends) values ($1, $2) on conflict do nothing`

// takeBaseline takes the ends of the log as they are: an older edition published up to there.
func (l *leader) takeBaseline(ctx context.Context) (ready bool, err error) {
	e := l.ends
	if time.Now().Before(e.lookAt) {
		return false, nil
	}
	e.lookAt = time.Now().Add(l.cfg.lookAgain)
	short, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := l.conn.Query(short, topicsSQL)
	topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, fmt.Errorf("list topics: %w", err)
	}
	found, err := l.askEnds(ctx, topics)
	if err != nil {
		return false, nil //nolint:nilerr // it is asked again
	}
	plan, point := map[topicPartition]storedEnd{}, map[topicPartition]storedEnd{}
	for _, f := range found {
		if err := l.readLast(ctx, f); err != nil {
			l.health.fail(err)
			return false, nil
		}
		plan[f.topicPartition] = storedEnd{End: f.to, Time: f.lastAt, Expected: f.to}
		point[f.topicPartition] = storedEnd{End: f.to, Time: f.lastAt}
	}
	for p := range e.of {
		if _, answered := plan[p]; !answered {
			return false, nil
		}
	}
	_, _, err = l.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, baselinePointSQL, l.publishedTo(), point)
		return err
	}, checkedSQL, l.epoch, plan, e.server, false, false)
	if err != nil {
		return false, fmt.Errorf("store the first look at the log: %w", err)
	}
	e.apply(plan)
	e.isBaseline, e.lookedAt, e.lookAt = false, &e.server, time.Time{}
	for _, f := range found {
		f.known, f.time, f.need, f.looked, f.unread, f.ready = f.to, f.lastAt, f.to, true, false, true
	}
	return true, nil
}
