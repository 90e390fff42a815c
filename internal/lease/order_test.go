package lease

import (
	"context"
	"errors"
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

// A Begin that has to wait for another statement on its row, a heartbeat for one, sees what that has made of it.
func TestABeginThatWaitsForItsRow(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]int64{"without an order": 0, "in order": 2} {
		for change, stale := range map[string]bool{
			`due_at = due_at + interval '1 s'`: false, `token = gen_random_uuid()`: true, `due_at = '2000-01-01'`: true,
		} {
			t.Run(name+", "+change, func(t *testing.T) {
				t.Parallel()
				b := setup(t, Settings{})
				if version == 0 {
					b.add(t, "e1")
				} else {
					b.owe(t, "e1", "k", version)
				}
				c := b.claim(t)
				tx, err := b.pool.Begin(t.Context())
				require.NoError(t, err)
				defer func() { _ = tx.Rollback(t.Context()) }()
				_, err = tx.Exec(t.Context(), `update lease set `+change)
				require.NoError(t, err)
				begun := make(chan error, 1)
				go func() { begun <- c.Begin(t.Context()) }()
				testkit.Until(t, func() bool {
					return b.count(t, `select count(*) from pg_stat_activity
						where datname = current_database() and wait_event_type = 'Lock'`) == 1
				})
				require.NoError(t, tx.Commit(t.Context()))
				if err := <-begun; stale {
					requireStale(t, err)
					require.Equal(t, Claimed, b.state(t, "e1"))
				} else {
					require.NoError(t, err)
					require.Equal(t, Submitting, b.state(t, "e1"))
				}
			})
		}
	}
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

// What was done for longer than the retention goes, with what belongs to it or not at all; what a person has to decide
// stays, and so does the order of keys.
func TestOldRowsArePurged(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Retention: time.Hour})
	b.add(t, "old", "new", "failed", "uncertain", "pending")
	b.owe(t, "ordered", "a", 2)
	b.add(t, "skipped", "skipped lately")
	b.exec(t, `insert into lease (handler, event_id) values ('other', 'old')`)
	b.exec(t, `insert into lease_watermark (handler, key, version) values ('test', 'a', 2)`)
	b.exec(t, `update lease set state = event_id, ended_at = clock_timestamp() - interval '2 h'
		where event_id in ('failed', 'uncertain', 'skipped')`)
	b.exec(t, `update lease set state = 'skipped', ended_at = clock_timestamp() where event_id = 'skipped lately'`)
	b.exec(t, `update lease set state = 'done', ended_at = clock_timestamp() - interval '2 h'
		where event_id in ('old', 'ordered')`)
	b.exec(t, `update lease set state = 'done', ended_at = clock_timestamp() where event_id = 'new'`)
	refused := errors.New("refused")
	b.leases.effect.Purged = func(context.Context, pgx.Tx, []string) error { return refused }
	require.ErrorIs(t, b.leases.Purge(t.Context()), refused)
	require.Equal(t, 9, b.count(t, `select count(*) from lease`))
	var gone []string
	b.leases.effect.Purged = func(_ context.Context, _ pgx.Tx, ids []string) error {
		gone = append(gone, ids...)
		return nil
	}
	require.NoError(t, b.leases.Purge(t.Context()))
	require.ElementsMatch(t, []string{"old", "ordered", "skipped"}, gone)
	require.Equal(t, 5, b.count(t, `select count(*) from lease where handler = 'test'`))
	require.Equal(t, 1, b.count(t, `select count(*) from lease where handler = 'other'`))

	b.owe(t, "late", "a", 1)
	requireSuperseded(t, b.of(t, b.leases)["late"].Begin(t.Context()), 2)
	kept := setup(t, Settings{})
	kept.add(t, "e1")
	kept.exec(t, `update lease set state = 'done', ended_at = 'epoch'`)
	require.NoError(t, kept.leases.Purge(t.Context()))
	require.Equal(t, 1, kept.count(t, `select count(*) from lease`), "without a retention all is kept")
}

// A runner purges when it starts, page by page.
func TestARunnerPurges(t *testing.T) {
	t.Parallel()
	b := setup(t, Settings{Retention: time.Hour})
	b.exec(t, `insert into lease (handler, event_id, state, ended_at)
		select 'test', n::text, 'done', clock_timestamp() - interval '2 h' from generate_series(1, 2500) as n`)
	b.run(t, b.leases, Effect{Do: func(context.Context, *Claim) error { return nil }})
	testkit.Until(t, func() bool { return b.count(t, `select count(*) from lease`) == 0 })
}
