package relay

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/fault"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/outboxtest"
)

const (
	crashEvents = 20 // over 5 keys, in pages of 6: 6, 6, 6, 2
	crashPage   = 6
)

type crashPoint struct {
	name string
	nth  int
	// again counts records that were taken but not recorded.
	again     int
	fail      []string
	prepare   string
	follows   bool // another session leads
	late      int  // events committed during the first Publish: another window follows
	scheduled int
	log       bool // its records are sent again more often
	runOn     bool // the point comes after all events are published
	// statement is instead of a named point; a shorter life ends without a crash.
	statement *crashtest.Statement
}

const (
	endUnsure           = `update outbox_cursor set ends = '{"test.events.v1/0": {"end": 0, "time": 0, "expected": 3}}'`
	restored            = `update outbox_cursor set sysid = 1`
	partitionsPublished = `insert into outbox_partition select upper, '2000-01-01' from generate_series(9, 17, 8) as upper`
)

var crashPoints = []crashPoint{
	{name: "relay.store.before", nth: 1},
	{name: "relay.store.after", nth: 1},
	{name: "relay.publish.before", nth: 1},
	{name: "relay.publish.after", nth: 1, again: crashPage},
	{name: "relay.store.before", nth: 2, again: crashPage},
	{name: "relay.store.after", nth: 2},
	{name: "relay.publish.before", nth: 2},
	{name: "relay.publish.after", nth: 4, again: 2},
	{name: "relay.store.before", nth: 5, again: 2},
	{name: "relay.store.after", nth: 5},
	{name: "relay.store.before", nth: 4, late: 2, again: crashPage},
	{name: "relay.store.after", nth: 4, late: 2},
	{name: "relay.publish.after", nth: 4, late: 2, again: 2},
	{name: "relay.publish.after", nth: 1, log: true},
	{name: "relay.publish.after", nth: 3, log: true},
	{name: "relay.publish.after", nth: 2, log: true, prepare: endUnsure},
}

func TestRelayCrashesEverywhere(t *testing.T) {
	t.Parallel()
	require.True(t, fault.Enabled, "build with -tags faults")
	for _, p := range crashPoints {
		name := fmt.Sprintf("%s %d, %d late, %d scheduled, %t %t", p.name, p.nth, p.late, p.scheduled, p.log, p.prepare != "")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crash(t, p)
		})
	}
}

const scheduleSQL = `
insert into outbox_scheduled (name, due_at, event_type, source, topic, key, data_schema, payload)
select 's' || n, now() - interval '1 minute', 'com.example.test.happened.v1', '/twinbox/test', 'test.events.v1',
    'k' || 2 * n, '', '{}'
from generate_series(1, $1::int) as n`

func crash(t *testing.T, p crashPoint) {
	t.Helper()
	o, pool := newOutbox(t), newDatabase(t, outboxtest.SmallPartitions)
	addMany(t, o, pool, crashEvents-p.late-p.scheduled, 5)
	execSQL(t, pool, scheduleSQL, p.scheduled)
	if p.prepare != "" {
		execSQL(t, pool, p.prepare)
	}
	path, dsn := wirePath(t), pool.Config().ConnString()
	until := crashEvents
	if p.runOn {
		until = 0
	}
	leader := func() {}
	if p.follows {
		leader = holdLock(t, pool)
	}
	first := startChild(t, childConfig{
		DSN: dsn, Wire: path, Point: p.name, Nth: p.nth, Fail: p.fail, Until: until, Statement: p.statement, Late: p.late,
		Log: p.log,
	})
	first.await(t)
	leader()
	if p.statement == nil || first.ProcessState.ExitCode() != 0 {
		require.False(t, first.ProcessState.Exited(), "it was killed at the point: %s", first.ProcessState)
	}

	awaitNoSession(t, pool)
	before, err := readWire(path)
	require.NoError(t, err)
	allowed := unrecorded(t, pool, before)
	if p.statement == nil && !p.log {
		require.Equal(t, p.again, allowed)
	}
	require.True(t, p.log || allowed <= crashPage)

	second := childConfig{DSN: dsn, Wire: path, Late: p.late, Log: p.log}.startHere(t)
	awaitNumber(t, pool, 0, `select count(*) from outbox_scheduled`)
	awaitCaughtUp(t, pool)
	second.stop()
	wire, err := readWire(path)
	require.NoError(t, err)
	if p.runOn { // requireAll would miss the rows of dropped partitions
		requireOrder(t, wire)
		require.Equal(t, crashEvents, distinct(wire))
	} else {
		requireAll(t, pool, wire)
	}
	if p.log {
		require.Zero(t, number(t, pool, ill), "all is healed")
		return
	}
	require.Equal(t, allowed, len(wire)-crashEvents, "wire duplicates")
}

// awaitNoSession waits for the server: a dead process's statement that arrived still runs.
func awaitNoSession(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	awaitNumber(t, pool, 0, `select count(*) from pg_stat_activity
			where datname = current_database() and application_name = 'outbox relay'`)
}

func holdLock(t testing.TB, pool *pgxpool.Pool) (release func()) {
	t.Helper()
	conn := acquireConn(t, pool)
	_, err := conn.Exec(t.Context(), `select pg_advisory_lock($1)`, lockClass)
	require.NoError(t, err)
	return func() {
		_, err := conn.Exec(t.Context(), `select pg_advisory_unlock($1)`, lockClass)
		require.NoError(t, err)
	}
}

// passedSQL checks the rows, not the head: a head may be above rows that only the next window sees.
const passedSQL = `select count(*) from outbox_cursor c where win is null
	and not exists (select from outbox o where not ` + IsPublished + `)`

func awaitCaughtUp(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	awaitCaughtUpBut(t, pool, 0)
}

func awaitCaughtUpBut(t testing.TB, pool *pgxpool.Pool, held int64) {
	t.Helper()
	awaitNumber(t, pool, 1, passedSQL+` and (select count(*) from outbox_held) = $1`, held)
}

// unrecorded counts the records on the wire that are not recorded. It fails if a recorded event is not there.
func unrecorded(t testing.TB, pool *pgxpool.Pool, wire []entry) (n int) {
	t.Helper()
	recorded := columnOf[string](t, pool, `select o.event_id::text from outbox o, outbox_cursor c
		where not exists (select from outbox_held h where h.position = o.position) and `+IsPublished)
	kept := columnOf[string](t, pool, `select event_id::text from outbox`)
	taken := map[string]bool{}
	for _, e := range wire {
		taken[e.ID] = true
		if slices.Contains(kept, e.ID) && !slices.Contains(recorded, e.ID) {
			n++
		}
	}
	for _, id := range recorded {
		require.True(t, taken[id], "recorded before it was taken")
	}
	return n
}

func TestCrashPointsAreAllListed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	call := regexp.MustCompile(`fault\.Here\("([^"]+)"\)`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range call.FindAllStringSubmatch(string(source), -1) {
			require.True(t, slices.ContainsFunc(crashPoints, func(p crashPoint) bool { return p.name == m[1] }), m[1])
		}
	}
}
