package outboxtest

import (
	"cmp"
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
func RequireAdded[T any](t testing.TB, db DB, of event.Definition[T], filters ...Filter) T {
	t.Helper()
	filters = append([]Filter{Type(of)}, filters...)
	all := Added(t, db)
	picked := pick(all, filters)
	if len(picked) != 1 {
		t.Fatalf("%d events were added with %s, and one was to be; %s", len(picked), names(filters), show(all))
	}
	payload, err := of.Decode(picked[0])
	if err != nil {
		t.Fatalf("event %s: %v\n%s", picked[0].ID, err, Line(picked[0]))
	}
	return payload
}

// RequireNone fails the test when the outbox has a picked event. Without a filter every event counts.
func RequireNone(t testing.TB, db DB, filters ...Filter) {
	t.Helper()
	if picked := Added(t, db, filters...); len(picked) > 0 {
		t.Fatalf("no event was to be added with %s; %s", names(filters), show(picked))
	}
}

func names(filters []Filter) string {
	var list []string
	for _, f := range filters {
		list = append(list, f.name)
	}
	return cmp.Or(strings.Join(list, ", "), "anything")
}

const shown = 20

func show(events []event.Event) string {
	if len(events) == 0 {
		return "the outbox has no event; those of an open transaction are visible in it alone"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "the outbox has %d, the last are", len(events))
	for _, e := range events[max(0, len(events)-shown):] {
		text.WriteString("\n  " + Line(e))
	}
	return text.String()
}

// Line shows an event's type, key, version and payload.
func Line(e event.Event) string {
	return fmt.Sprintf("%s %s v%d %s", e.Type, e.Key, e.Version, e.Data)
}
