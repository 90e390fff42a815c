package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Paused describes a pause that an operator has made.
type Paused struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"` // by the database's clock
}

var (
	// ErrPaused means that the relay is paused already.
	ErrPaused = errors.New("the relay is paused already")
	// ErrNotPaused means that the relay is not paused.
	ErrNotPaused = errors.New("the relay is not paused")
)

const pauseSQL = `
update public.outbox_cursor set paused_at = clock_timestamp(), paused_by = $1, paused_for = $2 where paused_at is null`

// Pause keeps every relay of this database from publishing from when tx commits until [Resume]. The page under way is
// published to its end. The pause outlives restarts.
func Pause(ctx context.Context, tx pgx.Tx, by, reason string) error {
	return changeRow(ctx, tx, "pause relay", ErrPaused, pauseSQL, by, reason)
}

const resumeSQL = `
update public.outbox_cursor c set paused_at = null, paused_by = null, paused_for = null
from (select paused_by, paused_for, paused_at from public.outbox_cursor where paused_at is not null for update) was
returning was.*`

// Resume ends the pause when tx commits, and returns it. Publishing continues within [Config.PollMax].
func Resume(ctx context.Context, tx pgx.Tx) (Paused, error) {
	rows, _ := tx.Query(ctx, resumeSQL)
	ended, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Paused])
	if errors.Is(err, pgx.ErrNoRows) {
		return ended, ErrNotPaused
	}
	if err != nil {
		return ended, fmt.Errorf("resume relay: %w", err)
	}
	return ended, nil
}
