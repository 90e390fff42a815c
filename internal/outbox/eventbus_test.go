package outbox

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestEventBusInsertsAsAddDoes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for name, change := range map[string]func(*event.Event){
		"complete": func(e *event.Event) {
			e.Source, e.DataSchema, e.Time, e.Version = "/other", "https://example.com/s.json", at, 1
			e.Extensions = map[string]string{"traceparent": "00-1", event.HeaderCausationID: "cause"}
		},
		"source of the outbox": func(e *event.Event) { e.Time = at },
		"time of the call":     func(e *event.Event) { e.Extensions = map[string]string{"a": "b"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := event.WithCause(t.Context(), event.Cause{CorrelationID: "c"})
			o, pool := newOutbox(t), newDatabase(t)
			conn, trips := traced(t, pool)
			e := newEvent("k")
			change(&e)
			for _, writer := range []string{"add", "event bus"} {
				require.NoError(t, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
					trips.n = 0
					if err := writers[writer](ctx, o, tx, e); err != nil {
						return err
					}
					require.Equal(t, 1, trips.n, writer)
					_, err := tx.Exec(ctx, `delete from outbox_key`) // the next writer adds the key's first event, too
					return err
				}))
			}
			require.EqualValues(t, 1, number(t, pool, `select count(distinct (event_type, source, topic, key, version,
				data_schema, headers, payload, occurred_at = $1)) from outbox`, at))
			require.EqualValues(t, 2, number(t, pool, `select count(*) from outbox where headers->>'ce_correlationid' = 'c'
				and (occurred_at = $1 or abs(extract(epoch from clock_timestamp() - occurred_at)) < 60)`, at))
		})
	}
}

func TestEventBusRefusesAnotherType(t *testing.T) {
	t.Parallel()
	bus, err := newOutbox(t).EventBus(t.Context(), nil)
	require.NoError(t, err)
	require.EqualError(t, bus.Publish(t.Context(), &event.Event{}),
		"publish event: *event.Event is not an event.Event")
}
