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
	"example.com/twinbox/internal/outbox/window"
	"example.com/twinbox/test/crashtest"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/testkit"
)

const (
	crashEvents = 20 // over 5 keys, in pages of 6: 6, 6, 6, 2
	crashPage   = 6
)

// crashPoint is a place at which a relay process kills itself, the nth time it gets there.
type crashPoint struct {
	name string
	nth  int
	// wire duplicates that the point allows: exactly this many, or from so many to so many where the page behind the one
	// that is being recorded may be in the air
	least, most int
	fail        []string // keys that fail once, so that something is parked
	prepare     string   // SQL before the process starts
	unrecorded  int      // Config.MaxUnrecorded; 0: two pages, so that each is recorded while the next is in the air
	late        int      // of the events are committed during the first call of Publish: another window follows
	scheduled   int      // of the events were scheduled, and are due
	runOn       bool     // the point comes after everything is published
	// statement to die around instead of at a named point; a life that is too short for it ends by itself
	statement *crashtest.Statement
}

const (
	restored  = `update outbox_cursor set sysid = 1`
	leased    = `update outbox_cursor set lease_until = clock_timestamp() + interval '1 hour'`
	published = `insert into outbox_partition select upper, '2000-01-01' from generate_series(9, 17, 8) as upper`
)

// Every crash point of the relay. A test keeps the list complete.
var crashPoints = []crashPoint{
	{name: "relay.follow", nth: 1, prepare: leased},
	{name: "relay.acquire.before", nth: 1},
	{name: "relay.acquire.in_tx", nth: 1},
	{name: "relay.acquire.after", nth: 1},
	{name: "relay.rebase.before", nth: 1, prepare: restored},
	{name: "relay.rebase.in_tx", nth: 1, prepare: restored},
	{name: "relay.rebase.after", nth: 1, prepare: restored},
	{name: "relay.renew.before", nth: 1},
	{name: "relay.partition.before_create", nth: 1},
	{name: "relay.partition.before_drop", nth: 1, prepare: published, runOn: true},
	{name: "relay.poll.before", nth: 1},
	{name: "relay.poll.after", nth: 1},
	{name: "relay.page.before", nth: 1},
	{name: "relay.page.after", nth: 1},
	{name: "relay.store.before", nth: 1},
	{name: "relay.store.after", nth: 1},
	{name: "relay.publish.before", nth: 1},
	{name: "relay.publish.after", nth: 1, least: crashPage, most: crashPage},
	{name: "relay.publish.before", nth: 2, least: 0, most: crashPage},
	{name: "relay.publish.after", nth: 4, least: 2, most: crashPage + 2},
	{name: "relay.page.before", nth: 3, least: 0, most: 2 * crashPage},
	{name: "relay.advance.before", nth: 1, least: crashPage, most: 2 * crashPage},
	{name: "relay.advance.after", nth: 1, least: 0, most: crashPage},
	{name: "relay.advance.before", nth: 3, least: crashPage, most: crashPage + 2},
	{name: "relay.finish.before", nth: 1, least: 2, most: 2},
	{name: "relay.finish.after", nth: 1},
	// Three pages: the first two are recorded together while the third is in the air, the last two with the window.
	{name: "relay.advance.before", nth: 1, unrecorded: 18, least: 12, most: 18},
	{name: "relay.advance.after", nth: 1, unrecorded: 18, least: 0, most: 6},
	{name: "relay.publish.before", nth: 3, unrecorded: 18, least: 0, most: 12},
	{name: "relay.publish.after", nth: 4, unrecorded: 18, least: 8, most: 8},
	{name: "relay.finish.before", nth: 1, unrecorded: 18, least: 8, most: 8},
	// All of them: nothing is recorded before the window's end.
	{name: "relay.publish.before", nth: 3, unrecorded: crashEvents + crashPage, least: 12, most: 12},
	{name: "relay.publish.after", nth: 3, unrecorded: crashEvents + crashPage, least: 18, most: 18},
	{name: "relay.finish.before", nth: 1, unrecorded: crashEvents + crashPage, least: crashEvents, most: crashEvents},
	{name: "relay.finish.after", nth: 1, unrecorded: crashEvents + crashPage},
	// Another window is opened with the end of the first one, which is recorded with it.
	{name: "relay.poll.after", nth: 2, late: 2, least: crashPage, most: 3 * crashPage},
	{name: "relay.finish_and_store.before", nth: 1, late: 2, least: crashPage, most: 2 * crashPage},
	{name: "relay.finish_and_store.after", nth: 1, late: 2},
	{name: "relay.publish.after", nth: 4, late: 2, least: 2, most: 2},
	{name: "relay.finish.before", nth: 1, late: 2, least: 2, most: 2},
	{name: "relay.change.in_tx", nth: 1, fail: []string{"k3"}, least: crashPage - 1, most: 2*crashPage - 1},
	{name: "relay.scheduled.before", nth: 1, scheduled: 3},
	{name: "relay.scheduled.in_tx", nth: 1, scheduled: 3},
	{name: "relay.scheduled.after", nth: 1, scheduled: 3},
	{name: "relay.forget.before", nth: 1, fail: []string{"k3"}, least: 1, most: 4},
	{name: "relay.forget.in_tx", nth: 1, fail: []string{"k3"}, least: 1, most: 4},
	{name: "relay.forget.after", nth: 1, fail: []string{"k3"}},
	{name: "relay.release.before", nth: 1},
}

// A relay process is killed at every point, and another one goes on: nothing is lost, first occurrences are in order,
// and exactly those records are sent again that were taken and not yet recorded.
func TestRelayCrashesEverywhere(t *testing.T) {
	t.Parallel()
	require.True(t, fault.Enabled, "build with -tags faults")
	for _, p := range crashPoints {
		name := fmt.Sprintf("%s %d, %d unrecorded, %d late, %d scheduled", p.name, p.nth, p.unrecorded, p.late, p.scheduled)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crash(t, p)
		})
	}
}

// scheduleSQL makes events due, of keys that are there and of a new one.
const scheduleSQL = `
insert into outbox_scheduled (name, due_at, event_type, source, topic, key, data_schema, payload)
select 's' || n, now() - interval '1 minute', 'com.example.test.happened.v1', '/twinbox/test', 'test.events.v1',
    'k' || 2 * n, '', '{}'
from generate_series(1, $1::int) as n`

func crash(t *testing.T, p crashPoint) {
	t.Helper()
	o, pool := newOutbox(t), newDatabase(t, outboxtest.SmallPartitions)
	addMany(t, o, pool, crashEvents-p.late-p.scheduled, 5)
	_, err := pool.Exec(t.Context(), scheduleSQL, p.scheduled)
	require.NoError(t, err)
	if p.prepare != "" {
		_, err = pool.Exec(t.Context(), p.prepare)
		require.NoError(t, err)
	}
	path, dsn := wirePath(t), pool.Config().ConnString()
	until := crashEvents
	if p.runOn {
		until = 0
	}
	first := startChild(t, childConfig{
		DSN: dsn, Wire: path, Point: p.name, Nth: p.nth, Fail: p.fail, Until: until, Unrecorded: p.unrecorded,
		Statement: p.statement, Late: p.late,
	})
	first.await(t)
	if p.statement == nil || first.ProcessState.ExitCode() != 0 {
		require.False(t, first.ProcessState.Exited(), "it was killed at the point: %s", first.ProcessState)
	}

	awaitNoSession(t, pool)
	endLease(t, pool)
	before, err := readWire(path)
	require.NoError(t, err)
	allowed := unrecorded(t, pool, before)
	require.GreaterOrEqual(t, allowed, p.least)
	require.LessOrEqual(t, allowed, p.most)

	second := startChild(t, childConfig{DSN: dsn, Wire: path, Late: p.late})
	testkit.Until(t, func() bool { return number(t, pool, `select count(*) from outbox_scheduled`) == 0 },
		"what is due is added")
	awaitCaughtUp(t, pool)
	require.NoError(t, second.Process.Kill())
	second.await(t)
	wire, err := readWire(path)
	require.NoError(t, err)
	if p.runOn { // partitions are gone, and with them what requireAll compares with
		requireOrder(t, wire)
		require.Equal(t, crashEvents, distinct(wire))
	} else {
		requireAll(t, pool, wire)
	}
	require.Equal(t, allowed, len(wire)-crashEvents, "wire duplicates")
}

// awaitNoSession waits until the server, too, has done with a dead process: a statement that had arrived is still run.
func awaitNoSession(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	testkit.Until(t, func() bool {
		return number(t, pool, `select count(*) from pg_stat_activity
			where datname = current_database() and application_name = 'outbox relay'`) == 0
	}, "the dead relay's session ends")
}

// endLease spares a test the wait for it; TestStoppedLeaderChangesNothing waits.
func endLease(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update outbox_cursor set lease_until = 'epoch'`)
	require.NoError(t, err)
}

// passedSQL asks for the rows, not for the head: a window's head may be above rows that only the next one sees.
const passedSQL = `select count(*) from outbox_cursor c where win is null and old_done is null
	and not exists (select from outbox o where not ` + window.IsPublished + `)`

// awaitCaughtUp waits until everything committed is recorded as published.
func awaitCaughtUp(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	awaitCaughtUpBut(t, pool, 0)
}

// awaitCaughtUpBut is awaitCaughtUp for when so many rows are held for good. What is held only until the broker answers
// again is waited for.
func awaitCaughtUpBut(t testing.TB, pool *pgxpool.Pool, held int64) {
	t.Helper()
	testkit.Until(t, func() bool {
		return number(t, pool, passedSQL+` and (select count(*) from outbox_held) = $1`, held) == 1
	}, "the backlog is published")
}

// unrecorded counts the records on the wire that the database does not know to be published; and it must know of none
// that is not on the wire. What was dropped with its partition counts as published.
func unrecorded(t testing.TB, pool *pgxpool.Pool, wire []entry) (n int) {
	t.Helper()
	recorded := outboxtest.Column[string](t, pool, `select o.event_id::text from outbox o, outbox_cursor c
		where not exists (select from outbox_held h where h.position = o.position)
		and case when c.old_done is not null then o.position <= c.old_pos
			else pg_visible_in_snapshot(o.xid, c.done) and o.position <= c.head
			or coalesce(pg_visible_in_snapshot(o.xid, c.win) and o.position <= c.win_pos, false) end`)
	kept := outboxtest.Column[string](t, pool, `select event_id::text from outbox`)
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
	files, err := filepath.Glob("../*/*.go")
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
