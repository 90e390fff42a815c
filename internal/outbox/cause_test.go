package outbox

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func TestEventsCarryTheirCause(t *testing.T) {
	t.Parallel()
	ctx := event.WithCause(t.Context(), event.Cause{
		CorrelationID: "c", CausationID: "d", TraceParent: "00-1", TraceState: "a=b",
	})
	o, pool := newOutbox(t), newDatabase(t)
	require.NoError(t, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := o.Add(ctx, tx, newEvent("a")); err != nil {
			return err
		}
		p, err := o.Publisher(ctx, tx)
		if err != nil {
			return err
		}
		m := testMessage("b")
		delete(m.Metadata, "traceparent")
		return p.Publish(testTopic, m)
	}))
	commit(t, o, pool, newEvent("c"))
	const whole = `{"traceparent":"00-1","tracestate":"a=b","ce_correlationid":"c","ce_causationid":"d"}`
	require.Equal(t, int64(2), number(t, pool, `select count(*) from outbox
		where key in ('a', 'b') and headers = $1::jsonb`, whole))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox where key = 'c' and headers is null`),
		"what follows from nothing carries nothing")
}
