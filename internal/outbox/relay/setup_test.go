package relay

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/failure"
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
	newEvent     = outboxtest.Event
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

// newLeader leads on a session of its own, with pages of ten. The relay that led before is deposed, as if the server
// had ended its session.
func newLeader(t testing.TB, pool *pgxpool.Pool, cfg Config) *leader {
	t.Helper()
	cfg.BatchSize = 10
	r, err := New(cfg)
	require.NoError(t, err)
	conn, err := r.connect(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { closeSession(context.Background(), conn) })
	l, err := r.lead(t.Context(), conn)
	require.NoError(t, err)
	return l
}

// depose makes a leader of this database a former one.
func depose(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update outbox_cursor set epoch = epoch + 1`)
	require.NoError(t, err)
}

// drain publishes all there is and returns the number of events.
func (l *leader) drain(t testing.TB) int {
	t.Helper()
	count := func() int { return int(testutil.ToFloat64(l.metrics.published.WithLabelValues(testTopic))) }
	for before := count(); ; {
		result, err := l.round(t.Context())
		require.NoError(t, err)
		if result == resting {
			require.NoError(t, l.finish(t.Context()))
			return count() - before
		}
	}
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool { return failure.Sleep(ctx, d) == nil }

// store stores the cursor without a page.
func (c *cursor) store(
	ctx context.Context, w *window, also func(context.Context, pgx.Tx) error,
) (paused bool, err error) {
	return c.storePage(ctx, w, nil, also)
}
