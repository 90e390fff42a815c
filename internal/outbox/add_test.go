package outbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestAddNumbersEachKeyFromOne(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	other := newEvent("a")
	other.Topic = "other.v1"

	first := commit(t, o, pool, newEvent("b"), newEvent("a"), newEvent("b"), other)
	second := commit(t, o, pool, newEvent("b"))

	versions := func(added []Added) (v []int64) {
		for _, a := range added {
			v = append(v, a.Version)
		}
		return v
	}
	require.Equal(t, []int64{1, 1, 2, 1}, versions(first), "a key counts per topic, in the order of the call")
	require.Equal(t, []int64{3}, versions(second))
	for i := 1; i < len(first); i++ {
		require.Greater(t, first[i].Position, first[i-1].Position)
	}
	for _, a := range first {
		require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox
			where event_id = $1 and position = $2 and version = $3`, a.ID, a.Position, a.Version))
	}
}

func TestAddKeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	e := event.Event{
		ID: uuid.NewString(), Source: "/elsewhere", Type: "t.v1", Topic: testTopic, Key: "k'\"\\ü",
		DataSchema: "https://example.com/s", Time: time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC),
		Data: []byte("\x00\xff not JSON"), Extensions: map[string]string{"traceparent": "00-1", "q\"": "\\{},\n"},
	}
	added := commit(t, o, pool, e)
	require.Equal(t, e.ID, added[0].ID)

	rows, err := pool.Query(t.Context(), `select event_id::text as id, source, event_type as type, topic, key,
		0 as version, data_schema, occurred_at, payload as data, headers as extensions from outbox`)
	require.NoError(t, err)
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[event.Event])
	require.NoError(t, err)
	e.Time = e.Time.Truncate(time.Microsecond)
	got.Time = got.Time.UTC()
	require.Equal(t, e, got)
}

func TestAddIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := o.Add(t.Context(), tx, newEvent("k"))
		require.NoError(t, err)
		return undo
	})
	require.ErrorIs(t, err, undo)
	require.Zero(t, number(t, pool, `select count(*) from outbox`))
	require.Equal(t, int64(1), commit(t, o, pool, newEvent("k"))[0].Version, "the number was void with the transaction")
}

func TestAddWithExpectedVersion(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for _, c := range []struct {
		name     string
		versions []int64 // of the events, all of key "old" (which has two) by default
		keys     []string
		conflict bool
	}{
		{name: "next", versions: []int64{3}},
		{name: "next two", versions: []int64{3, 4}},
		{name: "one named, one not", versions: []int64{0, 4}},
		{name: "first of a new key", versions: []int64{1}, keys: []string{"new"}},
		{name: "two keys", versions: []int64{3, 1}, keys: []string{"old", "new"}},
		{name: "taken", versions: []int64{2}, conflict: true},
		{name: "too far", versions: []int64{4}, conflict: true},
		{name: "contradictory", versions: []int64{3, 3}, conflict: true},
		{name: "second of a new key", versions: []int64{2}, keys: []string{"new"}, conflict: true},
		{name: "one of two keys", versions: []int64{0, 2}, keys: []string{"old", "new"}, conflict: true},
		{name: "the other of two keys", versions: []int64{9, 1}, keys: []string{"old", "new"}, conflict: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			keyOf := func(name string) string { return c.name + ": " + name }
			commit(t, o, pool, newEvent(keyOf("old")), newEvent(keyOf("old")))
			events := make([]event.Event, len(c.versions))
			for i, v := range c.versions {
				events[i] = newEvent(keyOf("old"))
				if c.keys != nil {
					events[i].Key = keyOf(c.keys[i])
				}
				events[i].Version = v
			}
			tx := begin(t, pool)
			added, err := o.Add(t.Context(), tx, events...)
			if c.conflict {
				require.ErrorIs(t, err, ErrVersionConflict)
				require.Nil(t, added)
			} else {
				require.NoError(t, err)
			}
			// No event of a call with a conflict may be there after a commit.
			require.NoError(t, tx.Commit(t.Context()))
			want := int64(2)
			if !c.conflict {
				want += int64(len(events))
			}
			require.Equal(t, want, number(t, pool, `select count(*) from outbox where key like $1`, keyOf("%")))
			require.Equal(t, want, number(t, pool, `select sum(version) from outbox_key where key like $1`, keyOf("%")))
		})
	}
}

func TestAddIgnoresTheSearchPath(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	tx := begin(t, pool)
	_, err := tx.Exec(t.Context(), `create schema trap; create table trap.outbox (like public.outbox);
		create table trap.outbox_key (like public.outbox_key); set local search_path = trap`)
	require.NoError(t, err)
	_, err = o.Add(t.Context(), tx, newEvent("k"))
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from public.outbox`))
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	schema := errors.New("no such field")
	for _, c := range []struct {
		code, text string
		change     func(*event.Event)
	}{
		{CodeInvalidEvent, "the id", func(e *event.Event) { e.ID = "7" }},
		{CodeInvalidEvent, "the id", func(e *event.Event) {
			e.ID = strings.ToUpper("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
		}},
		{CodeInvalidEvent, "the id", func(e *event.Event) { e.ID = "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8" }},
		{CodeInvalidEvent, "the id", func(e *event.Event) { e.ID = uuid.Nil.String() }},
		{CodeInvalidEvent, "the type", func(e *event.Event) { e.Type = "" }},
		{CodeInvalidEvent, "the topic", func(e *event.Event) { e.Topic = "" }},
		{CodeInvalidEvent, "the topic", func(e *event.Event) { e.Topic = "a b" }},
		{CodeInvalidEvent, "the topic", func(e *event.Event) { e.Topic = ".." }},
		{CodeInvalidEvent, "the topic", func(e *event.Event) { e.Topic = strings.Repeat("t", 250) }},
		{CodeInvalidEvent, "the key", func(e *event.Event) { e.Key = "" }},
		{CodeInvalidEvent, "the key", func(e *event.Event) { e.Key = strings.Repeat("k", 1025) }},
		{CodeInvalidEvent, "the version", func(e *event.Event) { e.Version = -1 }},
		{CodeInvalidEvent, "the time", func(e *event.Event) { e.Time = time.Unix(0, 0) }},
		{CodeInvalidEvent, "the payload", func(e *event.Event) { e.Data = nil }},
		{CodeInvalidEvent, "the key", func(e *event.Event) { e.Key = "a\x00b" }},
		{CodeInvalidEvent, "the type", func(e *event.Event) { e.Type = "\xff" }},
		{CodeInvalidEvent, "an extension", func(e *event.Event) { e.Extensions = map[string]string{"x": "\x00"} }},
		{CodeInvalidEvent, "an extension", func(e *event.Event) { e.Extensions = map[string]string{"": "x"} }},
		{CodeInvalidEvent, "ce_id", func(e *event.Event) { e.Extensions = map[string]string{event.HeaderID: "x"} }},
		{CodeTooLarge, "bytes with headers", func(e *event.Event) { e.Data = make([]byte, defaultMaxEventBytes) }},
		{CodeTooLarge, "bytes with headers", func(e *event.Event) {
			e.Extensions = map[string]string{"x": strings.Repeat("x", defaultMaxEventBytes)}
		}},
		{CodeInvalidPayload, "test.happened.v1: no such field", func(e *event.Event) { e.Data = []byte("bad") }},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			o, err := New(Config{Source: "/test", Validate: func(e event.Event) error {
				if string(e.Data) == "bad" {
					return schema
				}
				return nil
			}})
			require.NoError(t, err)
			bad := newEvent("k")
			c.change(&bad)
			_, err = o.Add(t.Context(), nil, newEvent("k"), bad) // no transaction: any statement would panic
			var refused *EventError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.code, refused.Code)
			require.Equal(t, c.code, refused.ErrorCode())
			require.True(t, refused.Permanent())
			require.Contains(t, refused.Detail, c.text)
			require.Equal(t, 1, refused.Index)
			if c.code == CodeInvalidPayload {
				require.ErrorIs(t, err, schema)
			}
		})
	}
}

func TestAddTakesTheLargestEvent(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	e := newEvent("k")
	e.Source = "/test"
	e.Data = make([]byte, defaultMaxEventBytes-headerBytes-2*len(e.Key)-len(e.Source)-len(e.Type))
	require.Equal(t, int64(1), commit(t, o, pool, e)[0].Version)
}

func TestNewRefusesASizeBrokersRefuse(t *testing.T) {
	t.Parallel()
	_, err := New(Config{MaxEventBytes: limitMaxEventBytes + 1})
	require.ErrorContains(t, err, "is not within 1 to 1000000 bytes")
}
