package relay

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox/window"
	"example.com/twinbox/test/outboxtest"
)

const (
	testTopic   = outboxtest.Topic
	testTimeout = outboxtest.Timeout
	tick        = outboxtest.Tick
)

type (
	entry          = outboxtest.Entry
	ledger         = outboxtest.Ledger
	partialError   = outboxtest.PartialError
	permanentError = outboxtest.PermanentError
)

var (
	newOutbox    = outboxtest.New
	newDatabase  = outboxtest.Database
	newLedger    = outboxtest.NewLedger
	event        = outboxtest.Event
	commit       = outboxtest.Commit
	addMany      = outboxtest.CommitMany
	addIn        = outboxtest.Add
	begin        = outboxtest.Begin
	dial         = outboxtest.Dial
	acquireConn  = outboxtest.Acquire
	number       = outboxtest.Number
	deadline     = outboxtest.Deadline
	entryOf      = outboxtest.EntryOf
	distinct     = outboxtest.Distinct
	requireOrder = outboxtest.RequireOrder
	requireAll   = outboxtest.RequireAll
)

// takeOver leads on a session of its own. The relay that led before is deposed, as if its lease had run out.
func takeOver(t testing.TB, pool *pgxpool.Pool) *session {
	t.Helper()
	conn, err := connect(t.Context(), dial(t, pool))
	require.NoError(t, err)
	t.Cleanup(func() { closeConn(context.Background(), conn) })
	endLease(t, pool)
	seen, err := readLeadership(t.Context(), conn)
	require.NoError(t, err)
	s := &session{conn: conn}
	require.NoError(t, s.acquire(t.Context(), "test", testLease, seen))
	require.NotNil(t, s.term)
	return s
}

// newLeader leads with pages of ten.
func newLeader(t testing.TB, pool *pgxpool.Pool, cfg Config) *leader {
	t.Helper()
	cfg.BatchSize = 10
	r, err := New(cfg)
	require.NoError(t, err)
	s := takeOver(t, pool)
	s.term.Lease = r.cfg.Lease
	l, err := r.newLeader(t.Context(), s)
	require.NoError(t, err)
	return l
}

// read runs windows until there is nothing new and returns the positions in the order of reading.
func read(t testing.TB, r *window.Reader) (positions []int64) {
	t.Helper()
	for {
		p, found, err := r.Next(t.Context(), false)
		require.NoError(t, err)
		if !found {
			return positions
		}
		for len(p.Records) > 0 {
			for _, rec := range p.Records {
				positions = append(positions, rec.Position)
			}
			p, err = r.Page(t.Context(), p.Last())
			require.NoError(t, err)
		}
		require.NoError(t, r.Finish(t.Context(), nil))
	}
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool { return failure.Sleep(ctx, d) == nil }
