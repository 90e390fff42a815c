package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/outbox"
)

// scheduledEvents adds what was scheduled when it is due. The leader sleeps until then; it looks again after a commit,
// which may have scheduled something that is due earlier.
type scheduledEvents struct {
	outbox  *outbox.Outbox // nil: nothing is added
	log     *slog.Logger
	metrics *metrics
	session *session

	lookedAt, lookAt time.Time
}

const (
	// lookAfterCommit bounds the looks where commits are many: a look costs a statement.
	lookAfterCommit = 200 * time.Millisecond
	// lookAnyway finds what another process has scheduled whose notification was lost.
	lookAnyway = 30 * time.Second
	// lookAtHeld is for what is due and cannot be had at the moment: a transaction holds its name or its key.
	lookAtHeld = 100 * time.Millisecond
	// lookAfterFailure is for when the database refuses.
	lookAfterFailure = time.Second
	// mostDue are added in one transaction.
	mostDue = 100
)

func (s *scheduledEvents) isDue() bool { return s.outbox != nil && !time.Now().Before(s.lookAt) }

// committed is told of commits.
func (s *scheduledEvents) committed() {
	if at := s.lookedAt.Add(lookAfterCommit); at.Before(s.lookAt) {
		s.lookAt = at
	}
}

// wait is how long the leader may sleep.
func (s *scheduledEvents) wait() time.Duration {
	if s.outbox == nil {
		return math.MaxInt64
	}
	return max(time.Until(s.lookAt), time.Millisecond)
}

// add adds what is due. Its error means that the session has ended: what the database refuses otherwise must not keep
// the relay from publishing, and is tried again.
func (s *scheduledEvents) add(ctx context.Context) error {
	s.lookedAt = time.Now()
	wait, err := s.addDue(ctx)
	switch {
	case err == nil:
	case s.session.conn.IsClosed():
		return err
	default:
		wait = lookAfterFailure
		if _, refused := errors.AsType[*outbox.CheckError](err); !refused { // who keeps writers out says why
			s.log.WarnContext(ctx, "scheduled events not added", "error", err)
		}
	}
	s.lookAt = s.lookedAt.Add(min(wait, lookAnyway))
	return nil
}

// addDue returns how long it is until there is something to do again.
func (s *scheduledEvents) addDue(ctx context.Context) (wait time.Duration, err error) {
	err = s.session.do(ctx, func(ctx context.Context) error {
		conn := s.session.conn
		next, scheduled, err := outbox.NextDue(ctx, conn)
		if wait = next; !scheduled {
			wait = lookAnyway
		}
		if err != nil || wait > 0 {
			return err
		}
		fault.Here("relay.scheduled.before")
		var added int
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			added, err = s.outbox.AddDue(ctx, tx, mostDue)
			fault.Here("relay.scheduled.in_tx")
			return err
		})
		if err != nil {
			return fmt.Errorf("add scheduled events: %w", err)
		}
		fault.Here("relay.scheduled.after")
		s.metrics.scheduled.Add(float64(added))
		if added == 0 {
			wait = lookAtHeld
		}
		return nil
	})
	return wait, err
}
