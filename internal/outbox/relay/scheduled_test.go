package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/testkit"
)

func addScheduled(t testing.TB, o *outbox.Outbox, pool *pgxpool.Pool, name string, due outbox.Due) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Schedule(t.Context(), tx, name, due, newEvent(name))
	}))
	o.Committed()
}

// A commit announces new events, even if they are due before the one that the relay waits for.
func TestTheLeaderAddsWhatIsDue(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.pollMin, cfg.PollMax, cfg.Lease, cfg.Wake, cfg.Scheduled = time.Hour, time.Hour, 4*time.Hour, o.Wake(), o
	r := startRelay(t, cfg)
	testkit.Until(t, r.leads)
	addScheduled(t, o, pool, "late", outbox.After(time.Hour))
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { // both are seen together
		return errors.Join(
			o.Schedule(t.Context(), tx, "second", outbox.After(2*time.Second), newEvent("second")),
			o.Schedule(t.Context(), tx, "first", outbox.After(300*time.Millisecond), newEvent("first")))
	}))
	o.Committed()
	wire := l.AwaitDistinct(t, 2)
	require.Equal(t, []string{"first", "second"}, []string{wire[0].Key, wire[1].Key})
	require.Zero(t, number(t, pool, `select count(*) from outbox where occurred_at > clock_timestamp()`))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox_scheduled`))
	r.stop()
	requireAll(t, pool, wire)
}

func TestALeaderSleepsUntilSomethingIsDue(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Scheduled = o
	l := newLeader(t, cfg)
	round := func() time.Duration {
		_, err := l.round(t.Context())
		require.NoError(t, err)
		return l.restFor(time.Hour)
	}
	require.Equal(t, time.Hour, round())
	addScheduled(t, o, pool, "a", outbox.After(20*time.Second))
	require.InDelta(t, 20*time.Second, round(), float64(5*time.Second))

	addScheduled(t, o, pool, "b", outbox.After(-time.Minute))
	holding := begin(t, pool)
	_, err := outbox.Cancel(t.Context(), holding, "b")
	require.NoError(t, err)
	require.LessOrEqual(t, round(), retryDue, "its transaction may still cancel it")
	require.NoError(t, holding.Rollback(t.Context()))
	testkit.Until(t, func() bool {
		round()
		return number(t, pool, `select count(*) from outbox where key = 'b'`) == 1
	})
}

func TestARelayThatCannotAddDueEventsPublishesTheOthers(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	addScheduled(t, o, pool, "s", outbox.After(-time.Minute))
	execSQL(t, pool, `alter table outbox add constraint refused check (key <> 's')`)
	cfg := testRelayConfig(t, pool, l)
	cfg.Wake, cfg.Scheduled = o.Wake(), o
	startRelay(t, cfg)
	commit(t, o, pool, newEvent("k"))
	l.AwaitDistinct(t, 1)
	execSQL(t, pool, `alter table outbox drop constraint refused`)
	require.Equal(t, "s", l.AwaitDistinct(t, 2)[1].Key)
}
