package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Forget deletes rows that have expired. Each statement deletes a bounded number of them, so that no lock is held for
// long, and is repeated until none is left.
func Forget(ctx context.Context, pool *pgxpool.Pool, statements ...string) error {
	var problems []error
	for _, sql := range statements {
		tag, err := pool.Exec(ctx, sql)
		for err == nil && tag.RowsAffected() > 0 {
			tag, err = pool.Exec(ctx, sql)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("delete expired rows: %w", err))
		}
	}
	return errors.Join(problems...)
}

// Hourly forgets now and every hour, until ctx ends.
func Hourly(ctx context.Context, log *slog.Logger, forget func(context.Context) error) error {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		if err := forget(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "expired rows not deleted", "error", err)
		}
		select {
		case <-hourly.C:
		case <-ctx.Done():
			return nil
		}
	}
}
