package outboxtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

// DB is a pool, which shows committed events, or a transaction, which shows its own as well. An open transaction locks
// its keys: a second one that adds an event of such a key waits without end.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Filter picks events. Several filters pick the events on which all agree.
type Filter struct {
	name string
	fits func(event.Event) bool
}

// Key picks the events of a key.
func Key[K ~string](key K) Filter {
	return Filter{"key " + string(key), func(e event.Event) bool { return e.Key == string(key) }}
}

// Type picks the events of a declaration.
func Type[T any](of event.Definition[T]) Filter {
	return Filter{"type " + of.Type, func(e event.Event) bool { return e.Type == of.Type }}
}

// CausedBy picks events that a handler of that event has added.
func CausedBy(id string) Filter {
	return Filter{"cause " + id, func(e event.Event) bool {
		return e.Extensions[event.HeaderCausationID] == id
	}}
}

const selectAdded = `
select event_id::text, event_type, source, topic, key, version, coalesce(data_schema, ''), occurred_at,
    coalesce(headers, '{}'), payload
from public.outbox where topic not like '` + event.CopyPrefix + `%' order by position`

// Added returns the picked events of the outbox in their order. Scheduled events appear when they are due; copies of
// dead letters never.
func Added(t testing.TB, db DB, filters ...Filter) []event.Event {
	t.Helper()
	rows, _ := db.Query(t.Context(), selectAdded)
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e event.Event, err error) {
		err = row.Scan(&e.ID, &e.Type, &e.Source, &e.Topic, &e.Key, &e.Version, &e.DataSchema, &e.Time, &e.Extensions,
			&e.Data)
		e.Time = e.Time.UTC()
		return e, err
	})
	require.NoError(t, err, "read outbox")
	return pick(events, filters)
}

func pick(events []event.Event, filters []Filter) []event.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool {
		return slices.ContainsFunc(filters, func(f Filter) bool { return !f.fits(e) })
	})
}

// RequireAdded returns the payload of the one picked event of that declaration. With none or several the test fails and
// shows the outbox's events.
func RequireAdded[T any](t testing.TB, db DB, of event.Definition[T], filters ...Filter) (payload T) {
	t.Helper()
	filters = append([]Filter{Type(of)}, filters...)
	all := Added(t, db)
	switch picked := pick(all, filters); len(picked) {
	case 0:
		t.Fatalf("no event was added with %s; %s%s", names(filters), tail("the outbox has", all), uncommitted(t, db))
	case 1:
		decoded, err := of.Decode(picked[0])
		if err != nil {
			t.Fatalf("event %s: %v\n%s", picked[0].ID, err, Line(picked[0]))
		}
		payload = decoded
	default:
		t.Fatalf("%d events were added with %s, and one was to be:\n%s", len(picked), names(filters), lines(picked))
	}
	return payload
}

// RequireNone fails the test when the outbox has a picked event. Without a filter every event counts.
func RequireNone(t testing.TB, db DB, filters ...Filter) {
	t.Helper()
	if picked := Added(t, db, filters...); len(picked) > 0 {
		t.Fatalf("no event was to be added with %s; %s", names(filters), tail("the outbox has", picked))
	}
}

func names(filters []Filter) string {
	if len(filters) == 0 {
		return "anything"
	}
	list := make([]string, len(filters))
	for i, f := range filters {
		list[i] = f.name
	}
	return strings.Join(list, ", ")
}

const shown = 20

func tail(what string, events []event.Event) string {
	switch n := len(events); {
	case n == 0:
		return "the outbox is empty"
	case n > shown:
		return fmt.Sprintf("%s %d, of which the last are\n%s", what, n, lines(events[n-shown:]))
	default:
		return what + "\n" + lines(events)
	}
}

func lines(events []event.Event) string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = "  " + Line(e)
	}
	return strings.Join(list, "\n")
}

// Line shows an event's type, key, version and payload.
func Line(e event.Event) string {
	return fmt.Sprintf("%s %s v%d %s", e.Type, e.Key, e.Version, e.Data)
}

// A transaction that has added or removed events holds this lock until it ends.
const selectWriters = `
select count(*) from pg_catalog.pg_locks
where database = (select oid from pg_catalog.pg_database where datname = current_database())
    and relation = 'public.outbox'::regclass and mode = 'RowExclusiveLock' and pid <> pg_backend_pid()`

func uncommitted(t testing.TB, db DB) string {
	t.Helper()
	rows, _ := db.Query(t.Context(), selectWriters)
	if n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int]); err != nil || n == 0 {
		return ""
	}
	return "\nA transaction of another connection has added events and is open: look into that one, or commit it before."
}
