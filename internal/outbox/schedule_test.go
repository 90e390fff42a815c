package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/testkit"
)

func schedule(t testing.TB, o *Outbox, pool *pgxpool.Pool, name string, due Due, e event.Event) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Schedule(t.Context(), tx, name, due, e)
	}))
}

func cancel(t testing.TB, pool *pgxpool.Pool, name string) (cancelled *ScheduledEvent) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		cancelled, err = Cancel(t.Context(), tx, name)
		return err
	}))
	return cancelled
}

func addDue(t testing.TB, o *Outbox, pool *pgxpool.Pool) (added int) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		added, err = o.AddDue(t.Context(), tx, 100)
		return err
	}))
	return added
}

const past = -time.Hour

func TestAScheduledEventIsAddedWhenItIsDue(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	ctx := event.WithCause(t.Context(), event.Cause{CorrelationID: "c", CausationID: "before"})
	due := time.Now().Add(past).UTC().Truncate(time.Microsecond)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return errors.Join(
			o.Schedule(ctx, tx, "a", DueAt(due), newEvent("k")), o.Schedule(ctx, tx, "later", After(time.Hour), newEvent("k")))
	}))
	commit(t, o, pool, newEvent("k"))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox`))

	require.Equal(t, 1, addDue(t, o, pool))
	require.Zero(t, addDue(t, o, pool))
	var version int64
	var occurred time.Time
	var headers []byte
	require.NoError(t, pool.QueryRow(t.Context(), `select version, occurred_at, headers from outbox
		order by position desc limit 1`).Scan(&version, &occurred, &headers))
	require.Equal(t, int64(2), version, "of the moment when it is added")
	require.Equal(t, due, occurred.UTC(), "an event without a time of its own happened when it was due")
	var extensions map[string]string
	require.NoError(t, json.Unmarshal(headers, &extensions))
	require.Equal(t, map[string]string{
		HeaderScheduledName: "a", event.HeaderCorrelationID: "c", event.HeaderCausationID: "before",
	}, extensions)
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox_scheduled where name = 'later'
		and due_at > clock_timestamp() + interval '50 minutes'`))
}

// A database that went back adds the same event. Consumers take the age from the time in the id: the due time, or the
// call's if already due.
func TestAScheduledEventKeepsItsID(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	called := time.Now().Truncate(time.Millisecond)
	later := called.Add(40 * 24 * time.Hour)
	schedule(t, o, pool, "later", DueAt(later), newEvent("k"))
	schedule(t, o, pool, "overdue", After(past), newEvent("k"))
	scheduled := func() map[string]uuid.UUID {
		rows, err := pool.Query(t.Context(), `select name, event_id from outbox_scheduled`)
		require.NoError(t, err)
		ids := map[string]uuid.UUID{}
		var name string
		var id uuid.UUID
		_, err = pgx.ForEachRow(rows, []any{&name, &id}, func() error {
			ids[name] = id
			return nil
		})
		require.NoError(t, err)
		return ids
	}
	ids := scheduled()
	require.Equal(t, uuid.Version(7), ids["later"].Version())
	require.Equal(t, later, timeOf(ids["later"]))
	require.False(t, timeOf(ids["overdue"]).Before(called))

	_, err := pool.Exec(t.Context(), `update outbox_scheduled set due_at = now()`)
	require.NoError(t, err)
	schedule(t, o, pool, "overdue", After(past), newEvent("another"))
	require.NotEqual(t, ids["overdue"], scheduled()["overdue"], "another event under the name")
	ids["overdue"] = scheduled()["overdue"]
	require.Equal(t, 2, addDue(t, o, pool))
	for name, id := range ids {
		require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox
			where event_id = $1 and headers ->> 'ce_scheduledname' = $2`, id, name))
	}
}

func TestAScheduledEventOfAnEarlierReleaseGetsAnID(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	schedule(t, o, pool, "old", After(past), newEvent("k"))
	_, err := pool.Exec(t.Context(), `update outbox_scheduled set event_id = null`)
	require.NoError(t, err)
	called := time.Now().Truncate(time.Millisecond)
	require.Equal(t, 1, addDue(t, o, pool))
	var id uuid.UUID
	require.NoError(t, pool.QueryRow(t.Context(), `select event_id from outbox`).Scan(&id))
	require.False(t, timeOf(id).Before(called))
}

func timeOf(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }

func TestScheduledEventsAreAddedInTheOrderInWhichTheyAreDue(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for _, n := range []int{3, 1, 2} {
		e := newEvent("k")
		e.Data = fmt.Appendf(nil, `%d`, n)
		schedule(t, o, pool, fmt.Sprint(n), DueAt(time.Now().Add(past+time.Duration(n)*time.Minute)), e)
	}
	require.Equal(t, 3, addDue(t, o, pool))
	rows, err := pool.Query(t.Context(), `select convert_from(payload, 'UTF8') from outbox order by version`)
	require.NoError(t, err)
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, payloads)
}

func TestScheduleAndCancelArePartOfTheTransaction(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		require.NoError(t, o.Schedule(t.Context(), tx, "a", After(past), newEvent("k")))
		return undo
	})
	require.ErrorIs(t, err, undo)
	require.Zero(t, addDue(t, o, pool))

	schedule(t, o, pool, "a", After(past), newEvent("old"))
	schedule(t, o, pool, "a", After(past), newEvent("new"))
	tx := begin(t, pool)
	cancelled, err := Cancel(t.Context(), tx, "a")
	require.NoError(t, err)
	require.NotNil(t, cancelled)
	require.Zero(t, addDue(t, o, pool), "a transaction may cancel until its end, and keeps no other waiting")
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, 1, addDue(t, o, pool))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox where key = 'new'`), "a name is one event's")
	require.Nil(t, cancel(t, pool, "a"), "too late: it is added")

	schedule(t, o, pool, "a", After(past), newEvent("k"))
	require.NotNil(t, cancel(t, pool, "a"))
	require.Nil(t, cancel(t, pool, "a"))
	require.Zero(t, addDue(t, o, pool))
}

func TestDueEventsWaitForNoTransaction(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, newEvent("held"))
	for i, name := range []string{"held", "new", "free", "also new"} {
		schedule(t, o, pool, name, After(past+time.Duration(i)*time.Minute), newEvent(name))
	}
	writer := begin(t, pool)
	_, err := o.Add(t.Context(), writer, newEvent("held"), newEvent("new"))
	require.NoError(t, err)

	require.Equal(t, 2, addDue(t, o, pool))
	require.Zero(t, addDue(t, o, pool))
	require.Equal(t, int64(1), number(t, pool, `select version from outbox where key = 'also new'`))
	require.NoError(t, writer.Commit(t.Context()))
	require.Equal(t, 2, addDue(t, o, pool))
	require.Equal(t, int64(3), number(t, pool, `select version from outbox where headers ->> 'ce_scheduledname' = 'held'`))
	require.Equal(t, int64(2), number(t, pool, `select version from outbox where headers ->> 'ce_scheduledname' = 'new'`))
}

func TestManyDueEventsOfHeldKeysStandInNoOthersWay(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	_, err := pool.Exec(t.Context(), `insert into outbox_scheduled (name, due_at, event_type, source, topic, key,
		data_schema, payload) select i::text, now() - interval '1 hour' + i * interval '1 second', 'test', '/test', $1,
		'held ' || i % 3, '', '{}' from generate_series(1, 500) as i`, testTopic)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `insert into outbox_key (topic, key, version)
		select distinct topic, key, 0 from outbox_scheduled`)
	require.NoError(t, err)
	schedule(t, o, pool, "free", After(-time.Minute), newEvent("free"))
	commit(t, o, pool, newEvent("held 0"), newEvent("held 1"))
	for _, key := range []string{"held 0", "held 1", "held 2"} { // of the last one the first event
		_, err := o.Add(t.Context(), begin(t, pool), newEvent(key))
		require.NoError(t, err)
	}
	require.Equal(t, 1, addDue(t, o, pool))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox where key = 'free'`))
	require.Zero(t, addDue(t, o, pool))
	require.Equal(t, int64(500), number(t, pool, `select count(*) from outbox_scheduled`))
}

func TestDueEventsOfAKeyStayInOrder(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	_, err := pool.Exec(t.Context(), `insert into outbox_scheduled (name, due_at, event_type, source, topic, key,
		data_schema, payload) select i::text, now() - interval '10 days' + i * interval '1 second', 'test', '/test', $1,
		'k', '', '{}' from generate_series(1, 100000) as i`, testTopic)
	require.NoError(t, err)
	commit(t, o, pool, newEvent("k"))
	writer := begin(t, pool)
	_, err = o.Add(t.Context(), writer, newEvent("k"))
	require.NoError(t, err)

	tx := begin(t, pool)
	looking := make(chan error, 1)
	go func() {
		_, err := o.AddDue(t.Context(), tx, 10)
		looking <- err
	}()
	testkit.Until(t, func() bool {
		return number(t, pool, `select count(*) from pg_stat_activity where state = 'active' and datname = current_database()
			and query like '%for update of s skip locked%' and pid <> pg_backend_pid()`) > 0
	})
	require.NoError(t, writer.Commit(t.Context()))
	require.NoError(t, <-looking)
	require.NoError(t, tx.Commit(t.Context()))
	require.NotZero(t, addDue(t, o, pool))
	require.Zero(t, number(t, pool, `select min(name::int) + count(*) - 100001 from outbox_scheduled`),
		"those that are left are the last ones")
}

func TestAKeyWithScheduledEventsCountsFromOne(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	schedule(t, o, pool, "later", After(past), newEvent("k"))
	first := newEvent("k")
	first.Version = 1
	require.Equal(t, int64(1), commit(t, o, pool, first)[0].Version)
	require.Equal(t, 1, addDue(t, o, pool))
	require.Equal(t, int64(2), number(t, pool, `select max(version) from outbox where key = 'k'`))

	add := func(events ...event.Event) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := o.Add(t.Context(), tx, events...)
			return err
		})
	}
	schedule(t, o, pool, "later", After(past), newEvent("l"))
	second, beside := newEvent("l"), newEvent("m")
	second.Version = 2
	require.ErrorIs(t, add(second), ErrVersionConflict)
	require.ErrorIs(t, add(second, beside), ErrVersionConflict)
	second.Version = 1
	require.NoError(t, add(second, beside))

	schedule(t, o, pool, "old", After(past), newEvent("n"))
	_, err := pool.Exec(t.Context(), `delete from outbox_key where key = 'n'`)
	require.NoError(t, err)
	require.Equal(t, 2, addDue(t, o, pool), "one that was stored before keys' rows were made is added too")
}

func TestTwoThatAddDueEventsAddEachOnce(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	schedule(t, o, pool, "a", After(past), newEvent("a"))
	one, other := begin(t, pool), begin(t, pool)
	added, err := o.AddDue(t.Context(), one, 100)
	require.NoError(t, err)
	require.Equal(t, 1, added)
	added, err = o.AddDue(t.Context(), other, 100)
	require.NoError(t, err)
	require.Zero(t, added)
	require.NoError(t, one.Commit(t.Context()))
	require.NoError(t, other.Commit(t.Context()))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox`))
}

func TestWhatCannotBeScheduled(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	o, err := New(Config{Source: "/test", MaxEventBytes: 1000, Validate: func(e event.Event) error {
		if string(e.Data) == "{}" {
			return errors.New("empty")
		}
		return nil
	}})
	require.NoError(t, err)
	with := func(change func(*event.Event)) event.Event {
		e := newEvent("k")
		change(&e)
		return e
	}
	for _, c := range []struct {
		code, text string
		name       string
		due        Due
		event      event.Event
	}{
		{CodeInvalidEvent, "the name", "", After(0), newEvent("k")},
		{CodeInvalidEvent, "the name", strings.Repeat("n", 256), After(0), newEvent("k")},
		{CodeInvalidEvent, "the name", "\x00", After(0), newEvent("k")},
		{CodeInvalidEvent, "due outside", "a", DueAt(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)), newEvent("k")},
		{CodeInvalidEvent, "due outside", "a", After(200 * 365 * 24 * time.Hour), newEvent("k")},
		{CodeInvalidEvent, "its id", "a", After(0), with(func(e *event.Event) { e.ID = uuid.NewString() })},
		{CodeInvalidEvent, "its version", "a", After(0), with(func(e *event.Event) { e.Version = 1 })},
		{CodeInvalidEvent, "the key", "a", After(0), with(func(e *event.Event) { e.Key = "" })},
		{CodeInvalidPayload, "empty", "a", After(0), with(func(e *event.Event) { e.Data = []byte("{}") })},
		{CodeTooLarge, "bytes", "a", After(0), with(func(e *event.Event) { e.Data = make([]byte, 1000) })},
	} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			err := o.Schedule(t.Context(), tx, c.name, c.due, c.event)
			require.NoError(t, o.Schedule(t.Context(), tx, "good", After(0), newEvent("k")), "the transaction stays usable")
			return err
		})
		var refused *EventError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, c.code, refused.Code)
		require.Contains(t, refused.Detail, c.text)
	}
	require.Zero(t, number(t, pool, `select count(*) from outbox_scheduled`))
	e := newEvent("k")
	e.Extensions = map[string]string{"x": "y"}
	schedule(t, o, pool, "a", After(0), e)
	require.Equal(t, map[string]string{"x": "y"}, e.Extensions, "the caller's event stays as it was")
}
