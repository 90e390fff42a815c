package inboxtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// Idempotence is the input of [RequireIdempotent]. Handlers, Migrations, Events and Tables are required.
type Idempotence struct {
	// Handlers is called once for each database.
	Handlers func(pool *pgxpool.Pool) Handlers
	// Migrations make the handlers' tables; the inbox's own are added.
	Migrations []migrations.Set
	// Configure changes the inbox's configuration, such as [Strict].
	Configure func(*inbox.Config)
	// Prepare fills each database before the first event.
	Prepare func(t testing.TB, pool *pgxpool.Pool)
	// Events are delivered in this order, as one partition.
	Events []event.Event
	// AcrossKeys keeps the order of different keys, as no broker does across partitions. By default the check changes it.
	AcrossKeys bool
	// Tables must have the same rows at the end, except in the columns Except, "table.column": times of the clock, random
	// ids. The table outbox_key, which counts the events of each key, is always one of them.
	Tables, Except []string
}

type way struct {
	name  string
	order []int // of the events; nil: as they are
	batch int   // events per transaction
	twice bool  // each event again directly, and the whole partition at the end
	fail  bool  // each event fails before and after each statement, each time with its transaction
}

// RequireIdempotent fails the test when the tables depend on how often, in which transactions and in which order across
// keys the events were handled. It delivers them once, in order. Then it uses a new database for each of these:
//
// - transactions of one, three and all events, each event twice, and the whole partition again;
// - the same, with a failure after each statement of each handler, which then starts again;
// - with the events of other keys in between, and key by key.
//
// The failure shows the first row that differs. Failures are injected into statements through the handlers' pool, in
// the goroutine that calls them.
func RequireIdempotent(t testing.TB, of Idempotence) {
	t.Helper()
	if len(of.Tables) == 0 {
		t.Fatal("name the tables that the handlers write, in Tables; of a handler that only publishes: outbox_key")
	}
	if slices.ContainsFunc(of.Migrations, func(s migrations.Set) bool { return s.Name == migrations.Outbox.Name }) {
		of.Tables = append(slices.Clone(of.Tables), "outbox_key")
	}
	once := of.play(t, way{name: "once", batch: 1})
	if len(slices.Concat(slices.Collect(maps.Values(once))...)) == 0 {
		t.Fatalf("no table has a row when the events were handled once: %q", of.Tables)
	}
	for _, w := range of.ways() {
		if difference := compare(of.Tables, once, of.play(t, w)); difference != "" {
			t.Fatalf("the handlers are not idempotent: %s, %d in a transaction\n%s\nA handler's effect belongs into its "+
				"transaction; a column that may differ into Except.", w.name, w.batch, difference)
		}
	}
}

func (of Idempotence) ways() (ways []way) {
	batches := []int{1, 3, len(of.Events)}
	slices.Sort(batches)
	for _, batch := range slices.Compact(batches) {
		ways = append(ways, way{name: "each event twice", batch: batch, twice: true})
	}
	for _, batch := range slices.Compact([]int{1, len(of.Events)}) { // a batch that fails is handled one by one
		ways = append(ways, way{
			name: "each event twice, failing behind each statement", batch: batch, twice: true, fail: true,
		})
	}
	if !of.AcrossKeys {
		inTurns, byKey := of.reorder()
		ways = append(ways,
			way{name: "with other keys in between", batch: 1, order: inTurns}, way{name: "key by key", batch: 1, order: byKey})
	}
	return ways
}

func (of Idempotence) reorder() (inTurns, byKey []int) {
	first, turns, turn := map[string]int{}, map[string]int{}, make([]int, len(of.Events))
	for i, e := range of.Events {
		if _, isKnown := first[e.Key]; !isKnown {
			first[e.Key] = i
		}
		turn[i] = turns[e.Key]
		turns[e.Key]++
		inTurns, byKey = append(inTurns, i), append(byKey, i)
	}
	slices.SortStableFunc(inTurns, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	slices.SortStableFunc(byKey, func(a, b int) int {
		return cmp.Compare(first[of.Events[a].Key], first[of.Events[b].Key])
	})
	return inTurns, byKey
}

func (of Idempotence) play(t testing.TB, w way) map[string][]string {
	t.Helper()
	statements := &statements{allowed: map[string]int{}}
	pool := statements.pool(t, pgtest.New(t, of.sets()...))
	if of.Prepare != nil {
		of.Prepare(t, pool)
	}
	var gone []string // dead letters explain missing rows
	cfg := On(pool).Config
	cfg.Consumer, cfg.Batch = "idempotence", w.batch
	cfg.Host = &Host{OnOutcome: func(e event.Event, outcome inbox.Outcome) {
		if outcome != inbox.Applied && outcome != inbox.Duplicate && outcome != inbox.Stale {
			gone = append(gone, fmt.Sprintf("event %s: %s", e.ID, outcome))
		}
	}}
	handlers := of.Handlers(pool)
	cfg.Accepts = handlers.Accepts
	if of.Configure != nil {
		of.Configure(&cfg)
	}
	in, err := inbox.New(cfg)
	require.NoError(t, err, "make inbox")
	next := handlers.HandleMessage
	if w.fail {
		next = statements.around(next)
	}
	handle := in.BatchMiddleware(next)
	for msgs := of.messages(t, w); len(msgs) > 0; {
		n := min(w.batch, len(msgs))
		_, err := handle(t.Context(), msgs[:n])
		require.NoError(t, err, "deliver events")
		msgs = msgs[n:]
	}
	require.NoError(t, in.Close(t.Context()), "close inbox")
	if len(gone) > 0 {
		t.Fatalf("%s: not every event was applied: %q", w.name, gone)
	}
	return of.rows(t, pool)
}

// messages gives a duplicate the offset of its first delivery.
func (of Idempotence) messages(t testing.TB, w way) (msgs []*message.Message) {
	t.Helper()
	var order []int
	for i := range of.Events {
		if w.order != nil {
			i = w.order[i]
		}
		order = append(order, i)
		if w.twice {
			order = append(order, i)
		}
	}
	if w.twice {
		order = append(order, order...)
	}
	for _, i := range order {
		at := event.Origin{Group: "idempotence", Topic: "idempotence", Offset: int64(i)}
		msgs = append(msgs, record(t.Context(), of.Events[i], at))
	}
	return msgs
}

func (of Idempotence) sets() []migrations.Set {
	sets := slices.Clone(of.Migrations)
	for _, needed := range []migrations.Set{migrations.Inbox, migrations.Audit} {
		has := func(s migrations.Set) bool { return s.Name == needed.Name }
		if !slices.ContainsFunc(sets, has) {
			sets = slices.Insert(sets, 0, needed)
		}
	}
	return sets
}

const selectRows = `select (to_jsonb(t) - $1::text[])::text from %s t order by 1`

func (of Idempotence) rows(t testing.TB, pool *pgxpool.Pool) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, table := range of.Tables {
		except := []string{}
		for _, column := range of.Except {
			if rest, is := strings.CutPrefix(column, table+"."); is {
				except = append(except, rest)
			}
		}
		rows, _ := pool.Query(t.Context(), fmt.Sprintf(selectRows, pgx.Identifier{table}.Sanitize()), except)
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, "read %s", table)
		found[table] = list
	}
	return found
}

func compare(tables []string, once, now map[string][]string) string {
	for _, table := range tables {
		a, b := once[table], now[table]
		for i := range max(len(a), len(b)) {
			if was, is := row(a, i), row(b, i); was != is {
				return fmt.Sprintf("table %s has %d rows and not %d; the first that differs\n  once: %s\n  now:  %s",
					table, len(b), len(a), was, is)
			}
		}
	}
	return ""
}

func row(rows []string, i int) string {
	if i >= len(rows) {
		return "none"
	}
	return rows[i]
}
