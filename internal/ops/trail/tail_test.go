package trail

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestTailSaysWhatBecameOfAnEvent(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	added := commit(t, o, pool, newEvent("a"), newEvent("b"), newEvent("a"))
	publishAll(t, pool)
	_, err := pool.Exec(t.Context(), `insert into outbox_held values ($1, 'b', 2)`, testTopic)
	require.NoError(t, err)
	commit(t, o, pool, newEvent("c"))

	entries, _, err := ReadTail(t.Context(), pool, Tail{Limit: 3, Payload: true})
	require.NoError(t, err)
	var states []string
	for _, e := range entries {
		states = append(states, e.State)
	}
	require.Equal(t, []string{"held", "published", "waiting"}, states)
	require.Equal(t, added[1].ID, entries[0].EventID)
	require.Equal(t, `{"n":1}`, string(entries[0].Payload))
	require.Equal(t, 7, entries[0].Bytes)

	entries, _, err = ReadTail(t.Context(), pool, Tail{Limit: 10, Topic: testTopic, Key: "a", Type: "test.happened.v1"})
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.EqualValues(t, 2, entries[1].Version)
	require.Nil(t, entries[1].Payload)
}

func TestTailReadsBackwardsInSteps(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	rare := newEvent("k")
	rare.Type = "test.rare.v1"
	commit(t, o, pool, newEvent("a"), rare, rare)
	_, err := pool.Exec(t.Context(), `select setval('outbox_position_seq', 498500)`) // a rollback leaves a gap, too
	require.NoError(t, err)
	addMany(t, o, pool, 1500, 100)
	var entries []Entry
	var asked []int64
	for before := int64(0); ; {
		page, rest, err := ReadTail(t.Context(), pool, Tail{Type: rare.Type, Limit: 2, Before: before})
		require.NoError(t, err)
		asked, entries = append(asked, rest), append(page, entries...)
		if before = rest; rest == 0 {
			break
		}
	}
	require.Equal(t, []int64{300_001, 100_001, 0}, asked)
	require.Len(t, entries, 2)
	require.EqualValues(t, 2, entries[0].Position)
	_, rest, err := ReadTail(t.Context(), pool, Tail{Type: "none", Limit: 2, Before: 501})
	require.NoError(t, err)
	require.Zero(t, rest, "nothing older is kept")

	rows, err := pool.Query(t.Context(), "explain (analyze, timing off, summary off, costs off) "+tailSQL,
		"", "", rare.Type, 2, false, int64(499_001), int64(500_001))
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, "\n"), "Rows Removed by Filter: 1000\n", "of 1,503")
	require.NotContains(t, strings.Join(plan, "\n"), "Seq Scan on outbox_1 ")
}
