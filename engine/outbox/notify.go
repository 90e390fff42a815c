package outbox

import (
	"cmp"
	"context"
	"log/slog"
	"time"

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
	notifySQL     = `select pg_notify('outbox', '')`
	notifyEvery   = 20 * time.Millisecond
	notifyTimeout = 5 * time.Second
)

// Run notifies until ctx ends; it returns nil. The first commit after a pause is told at once.
func (n *Notifier) Run(ctx context.Context) error {
	every, log := cmp.Or(n.Every, notifyEvery), cmp.Or(n.Log, slog.New(slog.DiscardHandler))
	for {
		select {
		case <-n.Wake:
		case <-ctx.Done():
			return nil
		}
		if err := n.notify(ctx); err != nil && ctx.Err() == nil {
			log.Warn("notify relays", "error", err)
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return nil
		}
	}
}

// notify is not cut off by the end of ctx: that would cost the connection.
func (n *Notifier) notify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()
	_, err := n.DB.Exec(ctx, notifySQL)
	return err
}
