package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// mostDue scheduled events are added in one transaction.
	mostDue = 100
	// retryDue is the pause when due events cannot be added.
	retryDue = 100 * time.Millisecond
)

// addDue adds the scheduled events that are due. Their failure does not keep the relay from publishing.
func (l *leader) addDue(ctx context.Context, nextDue *time.Duration) error {
	if nextDue == nil || l.cfg.Scheduled == nil {
		l.dueAt = time.Time{}
		return nil
	}
	l.dueAt = time.Now().Add(*nextDue)
	if *nextDue > 0 || time.Since(l.notAddedAt) < retryDue {
		return nil
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	added := 0
	err := pgx.BeginFunc(ctx, l.conn, func(tx pgx.Tx) (err error) {
		added, err = l.cfg.Scheduled.AddDue(ctx, tx, mostDue)
		return err
	})
	if err != nil && l.conn.IsClosed() {
		return fmt.Errorf("add scheduled events: %w", err)
	}
	if err != nil {
		l.cfg.Log.Warn("scheduled events not added", "error", err)
		added = 0
	}
	if added == 0 {
		l.notAddedAt = time.Now()
	}
	l.metrics.scheduled.Add(float64(added))
	return nil
}
