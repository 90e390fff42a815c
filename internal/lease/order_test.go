package lease

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func (b *bundle) owe(t *testing.T, id, key string, version int64) {
	t.Helper()
	b.exec(t, IntentInOrder, "test", id, key, version)
}

// of claims everything that is due and returns each event's claim.
func (b *bundle) of(t *testing.T, l *Runner) map[string]*Claim {
	t.Helper()
	claims, err := l.Claim(t.Context(), 10)
	require.NoError(t, err)
	of := map[string]*Claim{}
	for _, c := range claims {
		of[c.EventID] = c
	}
	return of
}

func requireSuperseded(t *testing.T, err error, by int64) {
	t.Helper()
	require.ErrorIs(t, err, ErrSuperseded)
	require.ErrorContains(t, err, fmt.Sprintf("behind version %d ", by))
}

// Once an effect has begun, none of an earlier version of its key begins, in any process, also if the first one fails.
// Other keys, other handlers and effects without an order do not mind.
func TestAnEffectBehindALaterOneIsSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.add(t, "unordered")
	b.owe(t, "a1", "a", 1)
	b.owe(t, "a2", "a", 2)
	b.owe(t, "a3", "a", 3)
	b.owe(t, "b1", "b", 1)
	claims := b.of(t, b.leases)
	require.Len(t, claims, 5)
	require.NoError(t, claims["a2"].Begin(t.Context()))
	requireSuperseded(t, claims["a1"].Begin(t.Context()), 2)
	require.NoError(t, claims["a2"].Retry(t.Context(), "certainly not", 0))
	require.NoError(t, b.of(t, b.leases)["a2"].Begin(t.Context()), "it is behind none but itself")
	require.NoError(t, claims["a3"].Begin(t.Context()))
	require.NoError(t, claims["b1"].Begin(t.Context()))
	require.NoError(t, claims["unordered"].Begin(t.Context()))
	require.Equal(t, Done, b.state(t, "a1"))
	require.Equal(t, 1, b.count(t, `select count(*) from lease where event_id = 'a1' and superseded_by = 2
		and ended_at is not null`))
	require.Zero(t, b.count(t, `select count(*) from lease where event_id <> 'a1' and superseded_by is not null`))

	b.owe(t, "a0", "a", 0)
	lost := b.of(t, b.leases)["a0"]
	b.expire(t)
	b.of(t, b.leases)
	require.ErrorIs(t, lost.Begin(t.Context()), ErrStale, "a lost lease decides nothing")
	require.Equal(t, Claimed, b.state(t, "a0"))
}

// Two effects of one key begin at the same moment. The second one waits for the first one's commit and sees it.
func TestTwoThatBeginAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{})
	b.owe(t, "a1", "a", 1)
	b.owe(t, "a2", "a", 2)
	claims := b.of(t, b.leases)
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `insert into lease_watermark (handler, key, version) values ('test', 'a', 2)`)
	require.NoError(t, err) // as the second one's Begin does
	begun := make(chan error, 1)
	go func() { begun <- claims["a1"].Begin(context.WithoutCancel(t.Context())) }()
	testkit.Until(t, func() bool {
		return b.count(t, `select count(*) from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock'`) == 1
	})
	require.NoError(t, tx.Commit(t.Context()))
	requireSuperseded(t, <-begun, 2)
}

// A runner skips what is superseded, and counts and keeps that apart from what was done.
func TestARunnerSkipsWhatIsSuperseded(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Workers: 1, Poll: 10 * time.Millisecond})
	b.exec(t, `insert into lease_watermark (handler, key, version) values ('test', 'a', 7)`)
	b.owe(t, "a6", "a", 6)
	b.owe(t, "a8", "a", 8)
	done := make(chan string, 2)
	b.run(t, b.leases, Effect{
		Do: func(ctx context.Context, c *Claim) error { return c.Begin(ctx) },
		Done: func(_ context.Context, _ pgx.Tx, c *Claim, _ time.Time) error {
			done <- c.EventID
			return nil
		},
	})
	b.await(t, "a6", Done)
	b.await(t, "a8", Done)
	require.Equal(t, "a8", <-done)
	require.Empty(t, done)
	testkit.Until(t, func() bool {
		return testutil.ToFloat64(b.leases.metrics.attempts.WithLabelValues("superseded")) == 1 &&
			testutil.ToFloat64(b.leases.metrics.attempts.WithLabelValues("done")) == 1
	})
}
