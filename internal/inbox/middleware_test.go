package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
)

func TestTheInboxRowSaysWhereTheRecordLay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEvent()
	e.Extensions = map[string]string{"ce_correlationid": "trace-me"}
	require.NoError(t, b.Deliver(t, record(t, e, 42), effect))
	var metadata []byte
	var at time.Time
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`select metadata, event_time from inbox where consumer = 'test' and event_id = $1`, e.ID).Scan(&metadata, &at))
	var got map[string]any
	require.NoError(t, json.Unmarshal(metadata, &got))
	began, err := time.Parse(time.RFC3339Nano, got["processing_time"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), began, time.Minute)
	require.Contains(t, got, "processing_time_ms")
	delete(got, "processing_time")
	delete(got, "processing_time_ms")
	require.Equal(t, map[string]any{
		"group": "local.test", "topic": "topic-1", "partition": 2., "offset": 42., "correlation_id": "trace-me",
	}, got)
	require.WithinDuration(t, time.Now(), at, time.Minute, "a UUIDv7's own time, not ce_time")
}

// A handler of less than a millisecond leaves the insert's 0.
func TestTheInboxRowHasTheHandlersTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	slow, fast := payload(v("key-1", 1), `{"value":"bad"}`), v("key-2", 1)
	_, handle := b.handle(t, failing(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select pg_sleep(0.02)`)
		return err
	}))
	_, err := handle(t.Context(), records(t, t.Context(), slow, fast))
	require.NoError(t, err)
	for _, e := range []event.Event{slow, fast} {
		found, err := inbox.Lookup(t.Context(), b.Pool, []string{"test"}, e.ID)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), *found[0].TakenAt, time.Minute)
		if e.ID == slow.ID {
			require.GreaterOrEqual(t, *found[0].Took, int64(20))
		}
	}
	require.Equal(t, 2, b.Count(t, `select count(*) from inbox where metadata ? 'processing_time_ms'`))
}

func TestTheSameIDFromAnotherSource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEvent()
	require.NoError(t, b.Deliver(t, record(t, e, 1), effect))
	e.Source = "/elsewhere"
	require.NoError(t, b.Deliver(t, record(t, e, 2), effect), "a duplicate")
	require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
	e.Data = []byte(`{"value":"b"}`)
	require.NoError(t, b.Deliver(t, record(t, e, 3), effect))
	require.Equal(t, 1, b.Effects(t, e.ID))
	require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter
		where code = 'id_conflict' and error like '%applied or given up'`))
}

func TestTheSameIDWithAnotherPayloadIsAConflict(t *testing.T) {
	t.Parallel()
	for mode, letters := range map[inbox.ConflictMode]int{inbox.ConflictError: 1, inbox.ConflictWarn: 0} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Config.OnConflict = mode
			outcomes, e := b.noteOutcomes(), newEvent()
			require.NoError(t, b.Deliver(t, record(t, e, 1), effect))
			e.Data = []byte(`{"value":"b"}`)
			for range 2 { // again, after a crash before the offset
				require.NoError(t, b.Deliver(t, record(t, e, 2), effect))
			}
			require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Conflict, inbox.Conflict}, *outcomes)
			require.Equal(t, 1, b.Effects(t, e.ID), "never applied")
			require.Equal(t, letters, b.Count(t, `select count(*) from dead_letter where code = 'id_conflict'`))
		})
	}
}

func TestTransientFailuresAreTriedUntilTheyEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.MaxAttempts = 2
	attempts := 0
	e := newEvent()
	require.NoError(t, b.Deliver(t, record(t, e, 1),
		func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
			if attempts++; attempts <= 20 {
				return &pgconn.PgError{Code: "57P01"}
			}
			return effect(ctx, tx, e, data)
		}))
	require.Equal(t, 1, b.Effects(t, e.ID))
	require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
	require.Equal(t, 20, b.counter(t, "inbox_failed_attempts_total", "transient"))
}

func TestUnknownFailuresAreBounded(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error":                func() error { return errors.New("no idea") },
		"panic":                func() error { panic("no idea") },
		"a context of its own": func() error { return context.Canceled },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Config.MaxAttempts = 3
			attempts := 0
			e := newEvent()
			require.NoError(t, b.Deliver(t, record(t, e, 1),
				func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
					attempts++
					require.NoError(t, effect(ctx, tx, e, data))
					return fail()
				}))
			require.Equal(t, 3, attempts)
			require.Zero(t, b.Effects(t, e.ID), "every attempt was rolled back")
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where attempts = 3`))
		})
	}
}

func TestAPermanentFailureIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	attempts := 0
	e := newEvent()
	fail := func(context.Context, pgx.Tx, event.Event, testData) error {
		attempts++
		return inbox.Permanent(errors.New("will never do"))
	}
	require.NoError(t, b.Deliver(t, record(t, e, 7), fail))
	require.NoError(t, b.Deliver(t, record(t, e, 7), fail), "redelivered after a crash before the offset")
	require.Equal(t, 1, attempts)
	require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter`))

	require.Equal(t,
		[]string{"key-1 " + string(e.Data) + " topic-1/2/7 permanent handler_failed " + testType + " will never do"},
		b.List(t, `select concat_ws(' ', convert_from(key, 'UTF8'), convert_from(payload, 'UTF8'),
			topic || '/' || partition || '/' || record_offset, class, code, event_type, error) from dead_letter`))
	require.Equal(t, []string{`[["x", "MQ=="], ["x", "/wA="]]`},
		b.List(t, `select headers::text from dead_letter`), "in order, twice, byte for byte")
}

func TestAHandlerMustNotPublish(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEvent()
	produced, err := b.Inbox(t).Middleware(func(m *message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("x", nil)}, nil
	})(record(t, e, 1))
	require.NoError(t, err)
	require.Empty(t, produced)
	require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where code = 'handler_publishes'`))
}

func TestWithoutTheMiddlewareNothingRuns(t *testing.T) {
	t.Parallel()
	mux := muxOf(effect)
	require.ErrorContains(t, mux.HandleNoPublish(newEvent().Message()), "middleware")
	require.Panics(t, func() { inbox.Handle(mux, testEvent, effect) }, "one handler per type")
}

func TestMembersAreComparedLetterByLetter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := newEvent()
	e.Data = []byte(`{"value":"checked","VALUE":"unchecked"}`)
	var got string
	require.NoError(t, b.Deliver(t, record(t, e, 1),
		func(_ context.Context, _ pgx.Tx, _ event.Event, data testData) error {
			got = data.Value
			return nil
		}))
	require.Equal(t, "checked", got)
}

func TestHandlingIsTimed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const took = 20 * time.Millisecond
	e := inboxtest.NewEvent()
	require.NoError(t, b.Deliver(t, inboxtest.Record(t, e, 1),
		func(ctx context.Context, tx pgx.Tx, _ event.Event, _ inboxtest.Data) error {
			_, err := tx.Exec(ctx, `select pg_sleep($1)`, took.Seconds())
			return err
		}))
	timed := b.metric(t, "inbox_handle_seconds", "test").GetHistogram()
	require.EqualValues(t, 1, timed.GetSampleCount())
	require.GreaterOrEqual(t, timed.GetSampleSum(), took.Seconds())
}
