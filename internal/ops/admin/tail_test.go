package admin

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

func TestTailSaysWhatBecameOfAnEvent(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	added := commit(t, o, pool, newEvent("a"), newEvent("b"), newEvent("a"))
	publishAll(t, pool)
	_, err := pool.Exec(t.Context(), `insert into outbox_held values ($1, 'b', 2)`, testTopic)
	require.NoError(t, err)
	commit(t, o, pool, newEvent("c"))

	h := handlers{Config: Config{Pool: pool}}
	tail, err := h.tail(t.Context(), adminapi.OutboxQuery{Limit: 3, Payload: true})
	require.NoError(t, err)
	var states []string
	for _, e := range tail.Items {
		states = append(states, string(e.State))
	}
	require.Equal(t, []string{"held", "published", "waiting"}, states)
	require.Equal(t, added[1].ID, tail.Items[0].EventID)
	require.Equal(t, `{"n":1}`, string(tail.Items[0].Payload))
	require.Equal(t, 7, tail.Items[0].Bytes)

	tail, err = h.tail(t.Context(), adminapi.OutboxQuery{
		Limit: 10, Topic: testTopic, Key: "a", Type: "happened",
	})
	require.NoError(t, err)
	require.Len(t, tail.Items, 2)
	require.EqualValues(t, 2, tail.Items[1].Version)
	require.Nil(t, tail.Items[1].Payload)
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
	h := handlers{Config: Config{Pool: pool}}
	var found []adminapi.OutboxEvent
	var asked []int64
	for before := int64(0); ; {
		page, err := h.tail(t.Context(), adminapi.OutboxQuery{Type: rare.Type, Limit: 2, After: before})
		require.NoError(t, err)
		asked, found = append(asked, page.Next), append(page.Items, found...)
		if before = page.Next; before == 0 {
			break
		}
	}
	require.Equal(t, []int64{300_001, 100_001, 0}, asked)
	require.Len(t, found, 2)
	require.EqualValues(t, 2, found[0].Position)
	last, err := h.tail(t.Context(), adminapi.OutboxQuery{Type: "none", Limit: 2, After: 501})
	require.NoError(t, err)
	require.Zero(t, last.Next, "nothing older is kept")

	rows, err := pool.Query(t.Context(), "explain (analyze, timing off, summary off, costs off) "+tailSQL,
		"", "", rare.Type, 2, false, int64(499_001), int64(500_001))
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, "\n"), "Rows Removed by Filter: 1000\n", "of 1,503")
	require.NotContains(t, strings.Join(plan, "\n"), "Seq Scan on outbox_1 ")
}
