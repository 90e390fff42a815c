// Package pause lets an operator stop a consumer and let it go on.
//
// A row of the consumer's database says that it is paused, so the word outlives restarts and holds for all instances.
// Each instance asks about once a second ([Gates.Run]) and stands before its next batch ([Gates.Wait]); what is under
// way is handled to its end. A consumer keeps its partitions meanwhile, its records wait on the topic.
//
// Not guaranteed: an instance that cannot reach its database goes by what it knew last, and handles nothing anyway. One
// that has not asked yet since its start waits until it has.
package pause

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Paused says of a consumer that it is paused.
type Paused struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"` // by the database's clock
}

var (
	// ErrPaused says that the consumer is paused already.
	ErrPaused = errors.New("the consumer is paused already")
	// ErrNotPaused says that the consumer is not paused.
	ErrNotPaused = errors.New("the consumer is not paused")
)

const insertPause = `
insert into public.inbox_pause (consumer, paused_by, reason) values ($1, $2, $3) on conflict do nothing`

// Pause pauses the consumer from when tx commits, or returns [ErrPaused].
func Pause(ctx context.Context, tx pgx.Tx, consumer, by, reason string) error {
	tag, err := tx.Exec(ctx, insertPause, consumer, by, reason)
	switch {
	case err != nil:
		return fmt.Errorf("pause consumer: %w", err)
	case tag.RowsAffected() == 0:
		return ErrPaused
	}
	return nil
}

const deletePause = `delete from public.inbox_pause where consumer = $1 returning paused_by, reason, since`

// Resume lets the consumer go on from when tx commits, and returns the pause that ends; or [ErrNotPaused].
func Resume(ctx context.Context, tx pgx.Tx, consumer string) (Paused, error) {
	rows, _ := tx.Query(ctx, deletePause, consumer)
	ended, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Paused])
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ended, ErrNotPaused
	case err != nil:
		return ended, fmt.Errorf("resume consumer: %w", err)
	}
	return ended, nil
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

const selectPauses = `select consumer, paused_by, reason, since from public.inbox_pause`

// Read returns the consumers that are paused.
func Read(ctx context.Context, db Querier) (map[string]Paused, error) {
	rows, _ := db.Query(ctx, selectPauses)
	paused := map[string]Paused{}
	var consumer string
	var p Paused
	_, err := pgx.ForEachRow(rows, []any{&consumer, &p.By, &p.Reason, &p.Since}, func() error {
		paused[consumer] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read pauses: %w", err)
	}
	return paused, nil
}
