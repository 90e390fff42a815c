package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// channel is what other processes' commits are told on.
const channel = "outbox"

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

// listen hears notifications on a connection of its own while the relay runs. The returned function waits for its end.
func (r *Relay) listen(ctx context.Context) (stop func()) {
	if !r.cfg.Listen {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			err := r.hear(ctx)
			if ctx.Err() != nil {
				return
			}
			r.log.Warn("listen for notifications", "error", err)
			if !sleep(ctx, jitter(retryMax)) {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (r *Relay) hear(ctx context.Context) error {
	conn, err := r.cfg.Connect(ctx)
	if err != nil {
		return err
	}
	defer closeSession(ctx, conn)
	if _, err := conn.Exec(ctx, `listen `+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		select {
		case r.heard <- struct{}{}:
		default:
		}
	}
}
