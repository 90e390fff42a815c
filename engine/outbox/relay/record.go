package relay

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/outbox/window"
)

// recorder opens windows and moves the cursor behind what was taken of them. A window that is through is closed by the
// change that opens the next one, or when none comes for a while.
type recorder struct {
	cfg        Config
	log        *slog.Logger
	session    *session
	window     *window.Reader
	unrecorded *receipts
	through    *outcome  // of the window that is open and through, if any: taken and not recorded
	recordedAt time.Time // the cursor was moved, or a window opened
}

// closeAfter is how long a window that is through stays open at rest: with 100 commits a second the next one comes
// sooner, and one change of the cursor serves both.
const closeAfter = 25 * time.Millisecond

// next opens the next window and reads its first page. It reports false if there is nothing new.
func (r *recorder) next(ctx context.Context) (first window.Page, found bool, err error) {
	open := r.window.Next
	if r.through != nil {
		open = r.window.FinishAndNext
	}
	err = r.session.do(ctx, func(ctx context.Context) (err error) {
		first, found, err = open(ctx)
		return err
	})
	switch {
	case err != nil:
		return first, false, err
	case !found && time.Since(r.recordedAt) < closeAfter:
		return first, false, nil
	case !found:
		return first, false, r.close(ctx)
	case r.through != nil:
		r.forget(*r.through)
		r.through = nil
	}
	r.recordedAt = time.Now()
	return first, true, nil
}

// waitToClose is how long the window that is through, if any, may stay open yet.
func (r *recorder) waitToClose() time.Duration {
	if r.through == nil {
		return math.MaxInt64
	}
	return max(closeAfter-time.Since(r.recordedAt), time.Millisecond)
}

// finish leaves open what is through. Not at a stop, nor while there is something to be written down with the end, nor
// what an earlier session has taken.
func (r *recorder) finish(ctx context.Context, taken outcome) error {
	r.through = &taken
	if ctx.Err() != nil || taken.hasSetAside() || taken.resumed {
		return r.close(ctx)
	}
	return nil
}

// close records what is through, if anything.
func (r *recorder) close(ctx context.Context) error {
	if r.through == nil {
		return nil
	}
	err := r.record(ctx, r.window.Finish, *r.through)
	r.through = nil
	return err
}

// isDue decides whether what was taken is to be recorded while so many more are in the air. A commit per page
// would cost more than reading it. What waits is what a crash sends again, so there is a limit to it, in time and in
// events. What was set aside is written down at once, and so is what an earlier session has taken: if sessions keep
// breaking, each must get further than the last.
func (r *recorder) isDue(taken outcome, inTheAir int) bool {
	switch {
	case taken.events == 0:
		return false
	case taken.resumed || taken.hasSetAside():
		return true
	case taken.events+inTheAir+r.cfg.BatchSize > r.cfg.MaxUnrecorded:
		return true // the next page could exceed it
	}
	return time.Since(r.recordedAt) >= r.cfg.RecordEvery
}

// advance records what was taken, and that nothing is left to be recorded.
func (r *recorder) advance(ctx context.Context, taken *outcome) error {
	err := r.record(ctx, func(ctx context.Context, also func(pgx.Tx) error) error {
		return r.window.Advance(ctx, taken.pos, also)
	}, *taken)
	*taken = outcome{}
	return err
}

// record runs a change of the cursor together with what is to be written down, if anything, and then forgets what need
// not be remembered any more.
func (r *recorder) record(
	ctx context.Context, change func(ctx context.Context, also func(pgx.Tx) error) error, out outcome,
) error {
	err := r.session.do(ctx, func(ctx context.Context) error {
		if !out.hasSetAside() {
			return change(ctx, nil)
		}
		return change(ctx, func(tx pgx.Tx) error { return writeOutcome(ctx, tx, out) })
	})
	if err != nil {
		return err
	}
	r.recordedAt = time.Now()
	logParked(ctx, r.log, out.parked)
	r.forget(out)
	return nil
}

// forget is for what is recorded.
func (r *recorder) forget(out outcome) {
	r.unrecorded.forget(func(x receipt) bool { return x.position <= out.pos })
}
