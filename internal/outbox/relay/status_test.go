package operate

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
)

func TestStatusCountsWhatWaits(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	s, err := ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	require.Equal(t, Status{LeaseUntil: s.LeaseUntil, Room: s.Room}, s, "nothing was ever written or led")

	slow := begin(t, pool)
	addIn(t, o, slow, "slow") // position 1, not committed
	commit(t, o, pool, event("a"), event("b"))
	s, err = ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Waiting, "what is not committed does not wait yet")
	require.NotNil(t, s.OldestWaiting)
	require.EqualValues(t, 3, s.Head)

	r := newReader(t, pool, 2)
	require.Equal(t, []int64{2, 3}, read(t, r))
	commit(t, o, pool, event("c"))
	require.NoError(t, slow.Commit(t.Context()))
	s, err = ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Waiting, "the late one lies below what is published and still waits")

	require.Equal(t, []int64{1, 4}, read(t, r))
	_, err = pool.Exec(t.Context(), `insert into outbox_held values ($1, 'a', 2)`, testTopic)
	require.NoError(t, err)
	s, err = ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	require.Zero(t, s.Waiting)
	require.Nil(t, s.OldestWaiting)
	require.EqualValues(t, 1, s.HeldEvents)

	for name, due := range map[string]outbox.Due{"late": outbox.After(-time.Hour), "soon": outbox.After(time.Hour)} {
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			require.Zero(t, s.OverdueSeconds)
			return o.Schedule(t.Context(), tx, name, due, event("k"))
		}))
	}
	s, err = ReadStatus(t.Context(), pool)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Scheduled)
	require.GreaterOrEqual(t, s.OverdueSeconds, time.Hour.Seconds())
	require.Less(t, s.OverdueSeconds, 2*time.Hour.Seconds())
}
