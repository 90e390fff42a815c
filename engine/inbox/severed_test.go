package inbox_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/inbox/replay"
)

// severing makes the bundle's connections break at each server answer that cut selects: the client never gets that
// answer.
func (b *bundle) severing(t *testing.T, cut func(answer []byte) bool) *pgxpool.Pool {
	t.Helper()
	cfg := b.Pool.Config()
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &severed{Conn: conn, cut: cut}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.Config.Pool = pool
	return pool
}

type severed struct {
	net.Conn
	cut func([]byte) bool
}

func (s *severed) Read(into []byte) (int, error) {
	n, err := s.Conn.Read(into)
	if n > 0 && s.cut(into[:n]) {
		_ = s.Close()
		return 0, syscall.ECONNRESET
	}
	return n, err
}

// isCommitted finds the answer to a commit.
func isCommitted(answer []byte) bool { return bytes.Contains(answer, []byte("COMMIT\x00")) }

// The connection is lost with the answer to the commit of a replayed dead letter. The dead letter is settled and
// counted, and the replay goes on with those parked behind it, though they were not selected.
func TestAReplayWhoseCommitIsNotAnswered(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	events := []cloudevent.Event{sick("a", 1, "bad"), v("a", 2), sick("b", 1, "bad")}
	c.deliver(t, events...)
	c.heal()
	var lost atomic.Bool
	c.severing(t, func(answer []byte) bool { return isCommitted(answer) && lost.CompareAndSwap(false, true) })
	c.Config.MaxAttempts = 2
	c.open(t)
	c.seen = nil
	report := c.replay(t, deadletter.Filter{Code: inbox.CodeHandlerFailed})
	require.True(t, lost.Load())
	require.Equal(t, replay.Report{Matched: 3, Keys: 2, Applied: 3}, report)
	c.requireEffects(t, events...)
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Applied, inbox.Applied}, c.seen)
}
