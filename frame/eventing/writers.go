package eventing

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/engine/outbox/restore"
)

// writers is whether a process that ran through a restore may add events. A restore in place ends all connections, so
// what is written after it goes over one that was opened since, and each is asked when it is opened: the relay of
// another process may be the one that compares, and has not yet.
type writers struct {
	node    *Node
	refused atomic.Pointer[outbox.CheckError] // what the last connection said
	asked   chan struct{}                     // holds a token while refused is to be asked again
}

// admit checks a new connection of the pool. It never refuses one that only reads.
func (w *writers) admit(ctx context.Context, conn *pgx.Conn) error {
	refused, is := errors.AsType[*outbox.CheckError](restore.CheckWriters(ctx, conn))
	if !is {
		return nil //nolint:nilerr // its user meets any other error
	}
	w.refused.Store(refused)
	select {
	case w.asked <- struct{}{}:
	default:
	}
	return nil
}

const askWriters = 500 * time.Millisecond

// await asks again until writers may go on.
func (w *writers) await(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.asked:
		}
		for w.refused.Load() != nil {
			err := restore.CheckWriters(ctx, w.node.Pool)
			if refused, is := errors.AsType[*outbox.CheckError](err); is || err == nil {
				w.refused.Store(refused)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(askWriters):
			}
		}
	}
}

// refuse keeps writers of a process that ran through a restore from adding events. While the broker is down the relay
// cannot find out whether there was one, and sign-ups do not wait for it.
func (w *writers) refuse() error {
	if err := w.node.relay.Restored(); err != nil {
		return failure.AsTransient(err) // until an operator has confirmed; no event is to blame
	}
	refused := w.refused.Load()
	if refused == nil || refused.Has(restore.CodeNotCompared) && w.node.dependencies.broker.Down() {
		return nil
	}
	return failure.AsTransient(refused)
}

// check asks whether events may be added. After a restore into another cluster the relay has to put the cursor
// right first, and after one that the broker knows better an operator has to confirm: an event added before that could
// take a number among the old ones and be lost. Only the broker can tell whether there was one; while it is down
// writers do not wait. What no relay cures is an error at once.
func (w *writers) check(ctx context.Context) error {
	err := restore.CheckWriters(ctx, w.node.Pool)
	refused, is := errors.AsType[*outbox.CheckError](err)
	if err == nil {
		w.refused.Store(nil) // what a connection heard before
	}
	switch {
	case !is || refused.Has(restore.CodeRestored):
		return err
	case refused.Has(restore.CodeNotCompared):
		if w.node.dependencies.broker.Down() {
			return nil
		}
		return err
	}
	return &uselessError{err}
}
