package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
)

func TestTimePassesForScheduledEvents(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return o.Schedule(t.Context(), tx, "a", outbox.After(time.Hour), outboxtest.Event("k"))
	}))
	due := func() (in time.Duration) {
		require.NoError(t, pool.QueryRow(t.Context(), `select due_at - clock_timestamp() from outbox_scheduled`).Scan(&in))
		return in
	}
	require.Positive(t, due())
	pgtest.Advance(t, pool, time.Hour)
	require.LessOrEqual(t, due(), time.Duration(0))
}
