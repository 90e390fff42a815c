package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Notifier tells the relays of other processes that this one, which has no relay, has committed events. It does so
// after the commits and at most once per interval, however many there are: a notification in every writing transaction
// would make all commits of the cluster wait for one lock. Polling finds what a lost notification does not tell.
type Notifier struct {
	Wake  <-chan struct{} // [Outbox.Wake]
	Every time.Duration   // default 20 ms
	Log   *slog.Logger    // default nowhere
	DB    interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	}
}

const (
	notifySQL   = `select pg_notify('outbox', '')`
	notifyEvery = 20 * time.Millisecond
)

// Run notifies until ctx ends; it returns nil. The first commit after a quiet time is told at once.
func (n *Notifier) Run(ctx context.Context) error {
	orDefault(&n.Every, notifyEvery)
	orDefault(&n.Log, slog.New(slog.DiscardHandler))
	for {
		select {
		case <-n.Wake:
		case <-ctx.Done():
			return nil
		}
		if _, err := n.DB.Exec(ctx, notifySQL); err != nil && ctx.Err() == nil {
			n.Log.Warn("notify relays", "error", err)
		}
		if !sleep(ctx, n.Every) {
			return nil
		}
	}
}

// forward waits for d. What this process commits meanwhile it tells the relay that leads, as a [Notifier] does.
func (r *Relay) forward(ctx context.Context, conn *pgx.Conn, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	var wake <-chan struct{}
	if r.cfg.Listen {
		wake = r.cfg.Wake
	}
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		}
		err := withTimeout(ctx, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, notifySQL)
			return err
		})
		if err != nil {
			return fmt.Errorf("notify the leader: %w", err)
		}
		if !sleep(ctx, notifyEvery) {
			return ctx.Err()
		}
	}
}

const listenSQL = `listen outbox`

// listen has the session told of other processes' commits.
func (r *Relay) listen(ctx context.Context, conn *pgx.Conn) error {
	if !r.cfg.Listen {
		return nil
	}
	return withTimeout(ctx, func(ctx context.Context) error {
		if _, err := conn.Exec(ctx, listenSQL); err != nil {
			return fmt.Errorf("listen for notifications: %w", err)
		}
		return nil
	})
}

// hear waits for d, for a notification or for a commit of this process, and reports whether it was one of the latter
// two. A session that ends meanwhile is an error at once, not with the next statement.
func (l *leader) hear(ctx context.Context, d time.Duration) (woken bool, err error) {
	waiting, stop := context.WithTimeout(ctx, d)
	defer stop()
	committed := make(chan bool, 1)
	go func() {
		select {
		case <-l.cfg.Wake:
			stop()
			committed <- true
		case <-waiting.Done():
			committed <- false
		}
	}()
	l.turn.Lock()
	_, err = l.conn.WaitForNotification(waiting)
	l.turn.Unlock()
	stopped := waiting.Err() != nil
	stop()
	switch here := <-committed; {
	case err == nil:
		return true, nil
	case stopped && !l.conn.IsClosed():
		return here, nil
	}
	return false, fmt.Errorf("wait for notifications: %w", err)
}
