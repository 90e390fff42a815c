// Package pause lets an operator stop a consumer and let it go on.
//
// A row of the consumer's database holds the pause, so it outlives restarts and holds for all instances. Each instance
// reads it about every two seconds ([Gates.Run]) and waits before its next batch ([Gates.Wait]). A batch under way is
// handled to its end. A paused consumer keeps its partitions; its records wait on the topic.
//
// Not guaranteed: an instance that cannot reach its database goes by what it knew last, and handles nothing anyway. One
// that has not asked yet since its start waits until it has.
package pause

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
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

const selectPauses = `select consumer, paused_by, reason, since from public.inbox_pause`

// Read returns the consumers that are paused.
func Read(ctx context.Context, db audit.Querier) (map[string]Paused, error) {
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

// Gates are where the deliveries of a process's consumers wait while they are paused. Each is shut until it is first
// known whether its consumer is.
type Gates struct {
	read   func(context.Context) (map[string]Paused, error)
	every  time.Duration
	failed func(error)
	asked  chan struct{}
	held   atomic.Int64
	last   atomic.Pointer[answer]
}

// answer is what was read.
type answer struct {
	paused map[string]Paused
	known  bool          // false: nothing was read yet
	newer  chan struct{} // closed when there is a newer one
}

// NewGates makes gates that read tells whether to open, each time that so long has passed; see [Read]. failed hears of
// its errors.
func NewGates(
	read func(context.Context) (map[string]Paused, error), every time.Duration, failed func(error),
) *Gates {
	g := &Gates{read: read, every: every, failed: failed, asked: make(chan struct{}, 1)}
	g.last.Store(&answer{newer: make(chan struct{})})
	return g
}

// IsOpen says whether [Gates.Wait] would return at once. It takes no lock.
func (g *Gates) IsOpen(consumer string) bool {
	last := g.last.Load()
	_, paused := last.paused[consumer]
	return last.known && !paused
}

// Held is how many callers wait.
func (g *Gates) Held() int64 { return g.held.Load() }

// Wait returns when the consumer is not paused, or with an error when ctx has ended.
func (g *Gates) Wait(ctx context.Context, consumer string) error {
	g.held.Add(1)
	defer g.held.Add(-1)
	for {
		newer := g.last.Load().newer // before looking, so that none between is missed
		if g.IsOpen(consumer) {
			return nil
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return fmt.Errorf("wait while the consumer is paused: %w", context.Cause(ctx))
		}
	}
}

// Look asks again at once, after a change in this process. It does not wait for the answer.
func (g *Gates) Look() {
	select {
	case g.asked <- struct{}{}:
	default:
	}
}

// Run opens and shuts the gates until ctx ends, and then returns nil. While there is no answer they stay as they are.
func (g *Gates) Run(ctx context.Context) error {
	tick := time.NewTicker(g.every)
	defer tick.Stop()
	for {
		paused, err := g.read(ctx)
		if err == nil {
			close(g.last.Swap(&answer{paused, true, make(chan struct{})}).newer)
		} else if ctx.Err() == nil {
			g.failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-g.asked:
		}
	}
}
