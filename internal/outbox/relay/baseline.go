package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const topicsSQL = `select distinct topic from public.outbox_key order by topic`

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
	looked, err := l.look(ctx, topics)
	if err != nil || !e.hasAllOf(looked) {
		return false, err
	}
	if _, err := l.check(ctx, looked); err != nil {
		return false, err
	}
	e.isBaseline, e.lookAt = false, time.Time{}
	return true, l.storePoint(ctx)
}
