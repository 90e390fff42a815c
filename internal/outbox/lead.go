package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// leader is one term of leadership on one session. One goroutine runs it; only the calls of Publish and the reading
// ahead have their own.
type leader struct {
	*Relay
	turn      sync.Mutex // whose turn it is on the connection: this goroutine's or that of the one who reads ahead
	conn      *pgx.Conn
	term      *term
	reader    *reader
	heldPages *pager
	parked    parkedKeys
	resumed   map[receipt]bool // taken in an earlier session of this process
	// answered is when the last statements that succeeded were asked: the session lived then.
	answered atomic.Pointer[time.Time]

	topics      map[string]int32 // the broker's last answer
	topicsAsked time.Time
	recorded    time.Time // the cursor was moved, or a window opened
	maintained  time.Time // partitions were looked at
	flushAt     time.Time // when parked keys are looked at again
	parkedLast  time.Time // a key was set aside
	takenLast   time.Time // a record was taken
	failedLast  time.Time // a call failed, and not for good, of which no record was taken
}

// lead publishes until something fails or ctx ends. All statements run detached from ctx: a stop waits for the few
// milliseconds that a page takes, and then nothing has to be sent twice.
func (r *Relay) lead(ctx context.Context, conn *pgx.Conn, t *term) error {
	l := &leader{
		Relay: r, conn: conn, term: t, heldPages: newPager(r.cfg.BatchSize, r.cfg.BatchBytes), resumed: r.recent.set(),
	}
	err := l.onConn(ctx, func(ctx context.Context) (err error) {
		if l.reader, err = newReader(ctx, conn, t, r.pages); err != nil {
			return err
		}
		l.parked, err = loadParked(ctx, conn)
		return err
	})
	if err != nil {
		return err
	}
	if l.reader.sysid != l.reader.here {
		if err := l.rebase(ctx); err != nil {
			return err
		}
	}
	if err := l.awaitRestore(ctx); err != nil {
		return err
	}
	if err := l.awaitTopics(ctx); err != nil {
		return err
	}
	if err := l.tend(ctx); err != nil {
		return err
	}
	if l.reader.old != nil {
		if err := l.publishLeftover(ctx); err != nil {
			return err
		}
	}
	return l.loop(ctx)
}

// onConn runs statements when it is their turn on the connection, and not cut off by a shutdown.
func (l *leader) onConn(ctx context.Context, do func(context.Context) error) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	asked := time.Now()
	err := withTimeout(ctx, do)
	if err == nil {
		l.answered.Store(&asked)
	}
	return err
}

// loop is the relay at work: parked keys that are due, a window, a pause if there was none.
func (l *leader) loop(ctx context.Context) error {
	for pause := l.cfg.PollMin; ctx.Err() == nil; {
		if err := l.awaitTopics(ctx); err != nil {
			return err
		}
		more, err := l.flush(ctx)
		if err != nil {
			return err
		}
		found, err := l.window(ctx)
		if err != nil {
			return err
		}
		if err := l.tend(ctx); err != nil {
			return err
		}
		if found || more {
			pause = l.cfg.PollMin
			continue
		}
		if !l.stuck() {
			l.health.well(stateLeading)
		}
		woken, err := l.idle(ctx, pause)
		if err != nil {
			return err
		}
		if woken {
			pause = l.cfg.PollMin
		} else {
			pause = min(2*pause, l.cfg.PollMax)
		}
	}
	return ctx.Err()
}

// idle reports whether it was ended by a commit that somebody told of.
func (l *leader) idle(ctx context.Context, pause time.Duration) (woken bool, err error) {
	if l.cfg.Listen {
		return l.hear(ctx, pause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-l.cfg.Wake:
		return true, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return false, nil
}

// tend keeps what has to be kept up whatever else happens, also while a broker is down: the lease and the partitions.
func (l *leader) tend(ctx context.Context) error {
	renew, maintain := l.term.left() < l.cfg.Lease*2/3, time.Since(l.maintained) >= l.cfg.MaintainEvery
	if !renew && !maintain {
		return nil // without waiting for a page that is just being read
	}
	return l.onConn(ctx, func(ctx context.Context) error {
		if renew {
			if err := l.term.renew(ctx, l.conn); err != nil {
				return err
			}
		}
		if !maintain {
			return nil
		}
		l.maintained = time.Now()
		err := l.maintain(ctx)
		if err == nil || errors.Is(err, errDeposed) || l.conn.IsClosed() {
			return err
		}
		// There is room ahead for a while, and somebody may hold a lock or have taken a right away: publishing goes on.
		l.metrics.neglected.Inc()
		l.log.Error("partitions not maintained", "error", err)
		return nil
	})
}

// rebase waits for a moment without writers. Nothing is published before.
func (l *leader) rebase(ctx context.Context) error {
	l.log.Warn("outbox was restored into another cluster", "from", l.reader.sysid, "to", l.reader.here)
	for {
		err := l.onConn(ctx, l.reader.rebase)
		if err == nil || !isBusy(err) {
			return err
		}
		l.log.Warn("rebase has to wait for writers", "error", err)
		if !sleep(ctx, jitter(l.cfg.RetryMax)) {
			return ctx.Err()
		}
		if err := l.onConn(ctx, func(ctx context.Context) error { return l.term.renew(ctx, l.conn) }); err != nil {
			return err
		}
	}
}
