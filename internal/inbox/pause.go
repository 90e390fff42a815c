package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
)

// Paused is an operator's pause of a consumer, for all instances. Each process reads it with [ReadPaused].
type Paused struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"` // by the database's clock
}

var (
	// ErrPaused means that the consumer is paused already.
	ErrPaused = errors.New("the consumer is paused already")
	// ErrNotPaused means that the consumer is not paused.
	ErrNotPaused = errors.New("the consumer is not paused")
)

const insertPause = `
insert into public.inbox_pause (consumer, paused_by, reason) values ($1, $2, $3) on conflict (consumer) do nothing`

// PauseConsumer pauses the consumer when tx commits, or returns [ErrPaused].
func PauseConsumer(ctx context.Context, tx pgx.Tx, consumer, by, reason string) error {
	tag, err := tx.Exec(ctx, insertPause, consumer, by, reason)
	if err != nil {
		return fmt.Errorf("pause consumer: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrPaused
	}
	return nil
}

const deletePause = `delete from public.inbox_pause where consumer = $1 returning paused_by, reason, since`

// ResumeConsumer ends the pause when tx commits and returns it, or [ErrNotPaused].
func ResumeConsumer(ctx context.Context, tx pgx.Tx, consumer string) (ended Paused, err error) {
	err = tx.QueryRow(ctx, deletePause, consumer).Scan(&ended.By, &ended.Reason, &ended.Since)
	if errors.Is(err, pgx.ErrNoRows) {
		return ended, ErrNotPaused
	}
	if err != nil {
		return ended, fmt.Errorf("resume consumer: %w", err)
	}
	return ended, nil
}

const selectPauses = `select consumer, paused_by, reason, since from public.inbox_pause`

// ReadPaused returns the paused consumers by name.
func ReadPaused(ctx context.Context, db audit.Querier) (map[string]Paused, error) {
	paused := map[string]Paused{}
	var consumer string
	var p Paused
	rows, _ := db.Query(ctx, selectPauses)
	_, err := pgx.ForEachRow(rows, []any{&consumer, &p.By, &p.Reason, &p.Since}, func() error {
		paused[consumer] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read pauses: %w", err)
	}
	return paused, nil
}
