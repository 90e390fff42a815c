package relay

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/testkit"
)

type partition struct {
	Name         string
	Lower, Upper int64
}

func listPartitions(t testing.TB, l *leader) []partition {
	t.Helper()
	rows, _ := l.conn.Query(t.Context(), Partitions+` order by upper`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[partition])
	require.NoError(t, err)
	return list
}

func uppers(t testing.TB, l *leader) (list []int64) {
	t.Helper()
	for _, p := range listPartitions(t, l) {
		list = append(list, p.Upper)
	}
	return list
}

// readPast waits until no transaction of another test on the server can hide below the landmark.
func readPast(t testing.TB, l *leader, published int64) {
	t.Helper()
	testkit.Until(t, func() bool {
		l.drain(t)
		return l.publishedTo() >= published
	})
}

// newPartitioned has table partitions of eight rows.
func newPartitioned(t testing.TB) (*outbox.Outbox, *pgxpool.Pool, *leader) {
	t.Helper()
	pool := newDatabase(t, outboxtest.SmallPartitions)
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.PartitionSize = 8
	return newOutbox(t), pool, newLeader(t, cfg)
}

func TestPartitionsAreCreatedAhead(t *testing.T) {
	t.Parallel()
	o, pool, l := newPartitioned(t)
	require.Equal(t, []int64{9, 17, 25, 33}, uppers(t, l))
	for range 40 {
		commit(t, o, pool, newEvent("k"))
		require.NoError(t, l.changePartitions(t.Context()))
	}
	require.Equal(t, []int64{57, 65, 73}, uppers(t, l)[6:])
	l.drain(t)
	awaitCaughtUp(t, pool)
}

func TestAPartitionWithOldRowsGetsNoMore(t *testing.T) {
	t.Parallel()
	o, pool, l := newPartitioned(t)
	next := func() int64 {
		t.Helper()
		require.NoError(t, l.changePartitions(t.Context()))
		commit(t, o, pool, newEvent("k"))
		l.drain(t)
		return number(t, pool, `select max(position) from outbox`)
	}
	require.Equal(t, int64(1), next())
	execSQL(t, pool, `insert into outbox_point (position, ends) values (1, '{}')`)
	require.Equal(t, int64(2), next(), "they are young")
	execSQL(t, pool, `update outbox_point set at = '2000-01-01'`)
	require.Equal(t, int64(9), next())
	require.Equal(t, int64(10), next(), "the new one has no old rows")
	l.cfg.PartitionSize = 80 // a tenth is the margin
	execSQL(t, pool, `insert into outbox_point (position, ends, at) values (10, '{}', '2000-01-01')`)
	require.Equal(t, int64(19), next(), "not below what writers may have")
	awaitCaughtUp(t, pool)
}

func TestPartitionsAreCreatedBesideWriters(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	writer := begin(t, pool)
	addIn(t, o, writer, "k")
	cfg := testRelayConfig(t, pool, newLedger())
	cfg.PartitionSize = 1_500_000
	l := newLeader(t, cfg)
	require.NoError(t, l.changePartitions(t.Context()))
	require.Len(t, uppers(t, l), 6)
	addIn(t, o, writer, "k")
	require.NoError(t, writer.Commit(t.Context()))
}

func TestOnlyPublishedPartitionsAreDropped(t *testing.T) {
	t.Parallel()
	o, pool, l := newPartitioned(t)
	expire := func() error {
		t.Helper()
		execSQL(t, pool, `update outbox_partition set published_at = '2000-01-01'`)
		return l.changePartitions(t.Context())
	}

	slow := begin(t, pool)
	addIn(t, o, slow, "slow") // position 1, in the first partition
	addMany(t, o, pool, 25, 3)
	l.drain(t)
	require.NoError(t, l.changePartitions(t.Context()))
	require.NoError(t, expire())
	require.Equal(t, int64(9), uppers(t, l)[0], "a row of it is not committed yet")

	require.NoError(t, slow.Commit(t.Context()))
	readPast(t, l, 26)
	execSQL(t, pool, `insert into outbox_held values ('t', 'k', 12)`)
	require.NoError(t, l.changePartitions(t.Context()))
	require.Equal(t, int64(9), uppers(t, l)[0], "published, but not for long enough")

	require.NoError(t, expire())
	require.Equal(t, []int64{17, 33}, uppers(t, l)[:2], "apart from the one with a held row")

	execSQL(t, pool, `insert into outbox_discarded values (12), (40)`)
	execSQL(t, pool, `delete from outbox_held`)
	busy := begin(t, pool)
	addIn(t, o, busy, "busy")
	require.ErrorContains(t, expire(), "lock timeout")
	require.Equal(t, int64(17), uppers(t, l)[0], "no writer is made to wait for long")
	require.NoError(t, busy.Commit(t.Context()))
	require.NoError(t, expire())
	require.Equal(t, int64(33), uppers(t, l)[0])
	require.Zero(t, number(t, pool, `select count(*) from outbox_partition`))
	require.Equal(t, int64(40), number(t, pool, `select position from outbox_discarded`), "of those that are gone none")
	readPast(t, l, 27)
}

func TestPartitionsAreDroppedDespiteOldNotes(t *testing.T) {
	t.Parallel()
	o, pool, l := newPartitioned(t)
	addMany(t, o, pool, 10, 3)
	readPast(t, l, 10)
	require.NoError(t, l.changePartitions(t.Context()))
	execSQL(t, pool, `update outbox_partition set published_at = '2000-01-01'`)
	execSQL(t, pool, `insert into outbox_partition (upper_bound, published_at)
		select -n, '2000-01-01' from generate_series(1, $1) n`, maxChanges)
	require.NoError(t, l.changePartitions(t.Context()))
	require.Equal(t, int64(17), uppers(t, l)[0])
}

func TestGivenIDsAreForgottenInTime(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	l := newLeader(t, testRelayConfig(t, pool, newLedger()))
	young := newEvent("k")
	young.ID = uuid.NewString()
	commit(t, o, pool, young)
	execSQL(t, pool, `insert into outbox_given_id (event_id, content, added_at)
		select gen_random_uuid(), '', now() - interval '241 hours' from generate_series(1, 20001)`)
	for range 3 {
		_, err := l.round(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, []string{young.ID}, columnOf[string](t, pool, `select event_id::text from outbox_given_id`))
}
