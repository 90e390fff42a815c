package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// session is the connection of a relay that leads, and the lease that it keeps on it. The leader's goroutine and the
// one that reads ahead share it: pages read on another connection could come from another server.
type session struct {
	mu   sync.Mutex // held for the statements of one call of do
	conn *pgx.Conn
	term *term
	need time.Duration // what has to be left of the lease when something is sent
	// answered is when the last statements that succeeded were sent: the session lived then.
	answered atomic.Pointer[time.Time]
}

func newSession(conn *pgx.Conn, t *term, need time.Duration) *session {
	return &session{conn: conn, term: t, need: need}
}

// do runs statements that no other call of do interrupts, and no shutdown.
func (s *session) do(ctx context.Context, statements func(context.Context) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := time.Now()
	err := withTimeout(ctx, statements)
	if err == nil {
		s.answered.Store(&sent)
	}
	return err
}

func (s *session) renew(ctx context.Context) error {
	return s.do(ctx, func(ctx context.Context) error { return s.term.renew(ctx, s.conn) })
}

// proveAfter is how old the last sign of the session may be when something is sent. It is shorter than returnGrace, so
// a leader that lives sends nothing more when a follower takes over after its session; a call may be under way.
const proveAfter = 60 * time.Millisecond

// secureLease makes sure that the lease outlasts the flight to come, and that the session has not ended meanwhile: a
// follower may have taken over, since the leader's lock ends with the session.
func (s *session) secureLease(ctx context.Context) error {
	answered := s.answered.Load()
	if s.term.remaining() >= s.need && answered != nil && time.Since(*answered) < proveAfter {
		return nil
	}
	err := s.renew(ctx)
	if err == nil && s.term.remaining() < s.need {
		err = fmt.Errorf("renew lease: took too long, %s of %s left", s.term.remaining(), s.term.lease)
	}
	return err
}

const listenSQL = `listen outbox`

// listen has the session told of other processes' commits.
func (s *session) listen(ctx context.Context) error {
	return s.do(ctx, func(ctx context.Context) error {
		if _, err := s.conn.Exec(ctx, listenSQL); err != nil {
			return fmt.Errorf("listen for notifications: %w", err)
		}
		return nil
	})
}

// reason is why a leader looks for something to publish.
type reason int

const (
	byTime reason = iota // a poll
	byNotification
	byCommit // of this process
)

// awaitCommit waits for d, for a notification or for a commit of this process, and says which it was. A session that
// ends meanwhile is an error at once, not with the next statement.
func (s *session) awaitCommit(ctx context.Context, wake <-chan struct{}, d time.Duration) (why reason, err error) {
	waiting, stop := context.WithTimeout(ctx, d)
	defer stop()
	committed := make(chan reason, 1)
	go func() {
		select {
		case <-wake:
			stop()
			committed <- byCommit
		case <-waiting.Done():
			committed <- byTime
		}
	}()
	_, err = s.conn.WaitForNotification(waiting)
	stopped := waiting.Err() != nil
	stop()
	switch why = <-committed; {
	case err == nil && why == byTime:
		return byNotification, nil
	case err == nil, stopped && !s.conn.IsClosed():
		return why, nil
	}
	return byTime, fmt.Errorf("wait for notifications: %w", err)
}
