package outboxtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/pgtest"
)

// Moved are the times that [Advance] moves, and Stays those that it does not: the times of events.
var (
	Moved = []string{
		"outbox_scheduled.due_at", "outbox_scheduled.scheduled_at", "outbox_parked.parked_at", "outbox_parked.retry_at",
		"outbox_given_id.added_at", "outbox_partition.published_at", "outbox_cursor.paused_at",
		"outbox_cursor.database_back_at", "outbox_cursor.broker_back_at",
	}
	Stays = []string{
		"outbox.occurred_at", "outbox_scheduled.occurred_at", "outbox_point.at", "outbox_lost.appended_at",
		"outbox_lost.found_at",
	}
)

// Advance lets time pass for the outbox: scheduled events become due, parked keys are tried again, retentions end. A
// relay that runs looks at once.
func Advance(t testing.TB, pool *pgxpool.Pool, d time.Duration) {
	t.Helper()
	pgtest.MoveBack(t, pool, d, Moved...)
	_, err := pool.Exec(t.Context(), `select pg_notify('outbox', '')`)
	require.NoError(t, err)
}
