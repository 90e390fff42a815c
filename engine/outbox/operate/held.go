package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const heldSQL = `
select topic, reason, extract(epoch from clock_timestamp() - parked_at)::float8
from public.outbox_parked
where not permanent and parked_at <= clock_timestamp() - $1 * interval '1 microsecond'
order by parked_at limit 1`

// CheckHeld is for a readiness check, on any instance. It fails if the events of a key have been held for longer than a
// time although the broker does not refuse them for good: their topic is gone, a right to it is missing, or one of its
// partitions has no leader, while others are published. A key that waits for an operator's release does not count.
func CheckHeld(ctx context.Context, db DB, limit time.Duration) error {
	var topic, reason string
	var seconds float64
	err := db.QueryRow(ctx, heldSQL, limit.Microseconds()).Scan(&topic, &reason, &seconds)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read held events: %w", err)
	}
	since := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	return fmt.Errorf("events for %s have been held for %s: %s", topic, since, reason)
}
