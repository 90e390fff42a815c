package relay

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/testkit"
)

func statusOf(t testing.TB, pool *pgxpool.Pool) Status {
	t.Helper()
	s, err := ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	return s
}

func TestStatusCountsWhatWaits(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	s := statusOf(t, pool)
	require.Equal(t, Status{Room: s.Room}, s, "nothing was ever written or led")

	slow := begin(t, pool)
	addIn(t, o, slow, "slow") // position 1, not committed
	commit(t, o, pool, newEvent("a"), newEvent("b"))
	room := s.Room
	s = statusOf(t, pool)
	require.Equal(t, room-3, s.Room)
	require.EqualValues(t, 2, s.Waiting, "what is not committed does not wait yet")
	require.NotNil(t, s.OldestWaiting)
	require.EqualValues(t, 3, s.Head)

	markPublished(t, pool)
	commit(t, o, pool, newEvent("c"))
	require.NoError(t, slow.Commit(t.Context()))
	s = statusOf(t, pool)
	require.EqualValues(t, 2, s.Waiting, "the late one lies below what is published and still waits")

	markPublished(t, pool)
	execSQL(t, pool, `insert into outbox_held values ($1, 'a', 2)`, testTopic)
	s = statusOf(t, pool)
	require.Zero(t, s.Waiting)
	require.Nil(t, s.OldestWaiting)
	require.EqualValues(t, 1, s.HeldEvents)

	for name, due := range map[string]outbox.Due{"late": outbox.After(-time.Hour), "soon": outbox.After(time.Hour)} {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			require.Zero(t, s.OverdueSeconds)
			return o.Schedule(t.Context(), tx, name, due, newEvent("k"))
		}))
	}
	s = statusOf(t, pool)
	require.EqualValues(t, 2, s.Scheduled)
	require.GreaterOrEqual(t, s.OverdueSeconds, time.Hour.Seconds())
	require.Less(t, s.OverdueSeconds, 2*time.Hour.Seconds())
}

func TestStatusShowsTheLeaderAndItsPause(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	status := func() Status { return statusOf(t, pool) }
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.Name = "the leader"
	r := startRelay(t, cfg)
	testkit.Until(t, func() bool { s := status(); return s.Leading && s.Epoch == 1 })
	require.Equal(t, "the leader", status().Leader)
	require.Nil(t, status().Paused)

	pause(t, pool, "ada", "a drill")
	paused := status()
	require.True(t, paused.Leading)
	require.Equal(t, &Paused{By: "ada", Reason: "a drill", Since: paused.Paused.Since}, paused.Paused)
	require.WithinDuration(t, time.Now(), paused.Paused.Since, time.Minute)

	r.stop()
	testkit.Until(t, func() bool { return !status().Leading })
	require.Equal(t, "the leader", status().Leader, "it led last")
	other := acquireConn(t, pool)
	_, err := other.Exec(t.Context(), `select pg_advisory_lock(7)`)
	require.NoError(t, err)
	require.False(t, status().Leading, "another lock is no leader")
}
