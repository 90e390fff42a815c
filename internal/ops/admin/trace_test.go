package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/test/outboxtest"
)

const testTopic = outboxtest.Topic

var (
	newOutbox   = outboxtest.New
	newDatabase = outboxtest.Database
	newEvent    = outboxtest.Event
	commit      = outboxtest.Commit
	addMany     = outboxtest.CommitMany
	publishAll  = outboxtest.MarkPublished
)

func TestAnEventIsFoundByItsIDsAndTellsItsState(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	added := commit(t, o, pool, newEvent("a"))
	publishAll(t, pool)
	caused := newEvent("b")
	caused.Extensions = map[string]string{
		event.HeaderCausationID: added[0].ID, event.HeaderCorrelationID: "order-7",
		event.HeaderTraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	later := commit(t, o, pool, caused)
	copied := newEvent("a") // of a dead letter, which is not a part of the key's story
	copied.Topic, copied.Extensions = "dlq.g.t", map[string]string{event.HeaderCausationID: added[0].ID}
	commit(t, o, pool, copied)

	ask := func(id string) []entry {
		found, _, err := readTrace(t.Context(), pool, adminapi.StoryQuery{ID: id})
		require.NoError(t, err)
		return found
	}
	found := ask(strings.ToUpper(added[0].ID))
	require.Equal(t, []entry{{OutboxEvent: adminapi.OutboxEvent{
		Position: 1, EventID: added[0].ID, Type: newEvent("a").Type, Topic: testTopic, Key: "a", Version: 1, Bytes: 7,
		OccurredAt: found[0].OccurredAt, State: "published",
	}, Correlation: added[0].ID}}, found)
	found = ask(added[0].ID)
	require.Len(t, found, 2)
	found = found[1:]
	require.Equal(t, []string{later[0].ID, "waiting", "order-7", added[0].ID},
		[]string{found[0].EventID, string(found[0].State), found[0].Correlation, found[0].Causation})
	require.NotEmpty(t, found[0].TraceParent)
	require.Len(t, ask("a"), 1)

	for _, held := range []struct{ change, state string }{
		{`insert into outbox_held values ('t', 'b', 2)`, "held"},
		{`delete from outbox_held; insert into outbox_discarded values (2)`, "discarded"},
	} {
		_, err := pool.Exec(t.Context(), held.change)
		require.NoError(t, err)
		require.EqualValues(t, held.state, ask(later[0].ID)[0].State)
	}
	for _, id := range []string{uuid.Must(uuid.NewV7()).String(), "users/3/17", ""} {
		require.Empty(t, ask(id), id)
	}
}

func TestAnEventOfAForeignID(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	addMany(t, o, pool, 20, 5)
	foreign := newEvent("a")
	foreign.ID = uuid.NewString()
	commit(t, o, pool, foreign)
	addMany(t, o, pool, 20, 5)
	find := func(hint adminapi.StoryQuery) int {
		hint.ID = foreign.ID
		found, _, err := readTrace(t.Context(), pool, hint)
		require.NoError(t, err)
		return len(found)
	}
	require.Equal(t, 1, find(adminapi.StoryQuery{}))
	_, err := pool.Exec(t.Context(), `delete from outbox_given_id`)
	require.NoError(t, err)
	_, needsHint, err := readTrace(t.Context(), pool, adminapi.StoryQuery{ID: foreign.ID})
	require.NoError(t, err)
	require.True(t, needsHint)
	require.Equal(t, 1, find(adminapi.StoryQuery{Key: "a"}))
	require.Equal(t, 0, find(adminapi.StoryQuery{Key: "b"}))
	require.Equal(t, 1, find(adminapi.StoryQuery{At: time.Now()}))
	require.Equal(t, 0, find(adminapi.StoryQuery{At: time.Now().Add(-time.Hour)}))
}

// The table is never analysed.
func TestNothingIsFoundByReadingTheTable(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	const rows = 24_000
	_, err := pool.Exec(t.Context(), `
insert into outbox (event_id, event_type, source, topic, key, version, occurred_at, headers, payload)
select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint + n), 12, '0') || '7' || substr(md5(n::text), 1, 3)
    || '8' || substr(md5(n::text), 4, 15))::uuid, 't.v1', '/test', 'topic', md5((n % 8000)::text), 1 + n / 8000,
    now(), case when n % 3 = 0 then jsonb_build_object('ce_causationid', md5('cause' || n)) end,
    decode(repeat('00', 200), 'hex')
from generate_series(1, $1) n`, rows)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `select brin_summarize_new_values(indexrelid) from pg_index i
		join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
		where a.amname = 'brin' and c.relkind = 'i'`)
	require.NoError(t, err)
	var id, key, cause string
	require.NoError(t, pool.QueryRow(t.Context(), `select event_id::text, key, headers->>'ce_causationid' from outbox
		where position = 12000`).Scan(&id, &key, &cause))
	var pages int
	require.NoError(t, pool.QueryRow(t.Context(),
		`select pg_relation_size('outbox_1') / current_setting('block_size')::int`).Scan(&pages))

	for name, ask := range map[string]struct {
		sql  string
		args []any
		rows int
	}{
		"by id":    {tracedByID, []any{id, "", 0, 0}, 1},
		"by key":   {tracedByKeyOrCause, []any{key}, 3},
		"by cause": {tracedByKeyOrCause, []any{cause}, 1},
		"foreign":  {tracedByID, []any{id, key, 0, 0}, 1},
		"at about": {tracedByID, []any{id, "", 11_900, 12_100}, 1},
		"near":     {positionsNear, []any{idAt(time.Now(), "0"), idAt(time.Now().Add(5*time.Second), "f")}, 1},
	} {
		plan := explain(t, pool, ask.sql, ask.args...)
		require.Empty(t, plan.scans, "%s reads a table", name)
		require.Equal(t, ask.rows, plan.rows, name)
		require.Less(t, plan.blocks, pages/4, "%s: of %d", name, pages)
	}
	found, _, err := readTrace(t.Context(), pool, adminapi.StoryQuery{ID: key})
	require.NoError(t, err)
	require.Len(t, found, 3)
}

type plan struct {
	scans        []string // tables of more than some blocks that were read from end to end
	rows, blocks int
}

type node struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Hit     int     `json:"Shared Hit Blocks"`
	Read    int     `json:"Shared Read Blocks"`
	Removed float64 `json:"Rows Removed by Filter"`
	Plans   []node
}

func explain(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (p plan) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := tx.Conn().PgConn().Exec(t.Context(), noScans).ReadAll()
		require.NoError(t, err)
		var document []byte
		err = tx.QueryRow(context.Background(), `explain (analyze, buffers, format json) `+sql, args...).Scan(&document)
		require.NoError(t, err)
		var plans []struct{ Plan node }
		require.NoError(t, json.Unmarshal(document, &plans))
		top := plans[0].Plan
		p.rows, p.blocks = int(top.Rows), top.Hit+top.Read
		var walk func(node)
		walk = func(n node) {
			if n.Type == "Seq Scan" && strings.HasPrefix(n.Table, "outbox_") && n.Hit+n.Read > 10 {
				p.scans = append(p.scans, fmt.Sprint(n.Table, " ", n.Hit+n.Read))
			}
			for _, child := range n.Plans {
				walk(child)
			}
		}
		walk(top)
		return nil
	}))
	return p
}
