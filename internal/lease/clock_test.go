package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/pgtest"
)

// The bubble's clock begins in the year 2000.
func TestAWrongClockChangesNothing(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"behind": 0, "ahead": 60 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Settings{})
			b.add(t, "e1", "e2")
			first := b.claim(t)
			require.NoError(t, first.Begin(t.Context()))
			second := b.claim(t)
			synctest.Test(t, func(t *testing.T) {
				if ahead > 0 {
					<-time.After(ahead)
				}
				ctx := context.Background()
				pool, err := pgxpool.New(ctx, pgtest.DSN(b.pool))
				require.NoError(t, err)
				defer pool.Close()
				wrong, err := New(Config{Handler: "test", Pool: pool, Settings: DefaultSettings()})
				require.NoError(t, err)
				require.Greater(t, time.Until(first.At).Abs(), 20*365*24*time.Hour, "the clock is wrong")

				require.NoError(t, wrong.Sweep(ctx))
				claim, err := wrong.Claim(ctx)
				require.NoError(t, err)
				require.Nil(t, claim, "leases that have not ended")

				_, err = pool.Exec(ctx, `update lease set due_at = clock_timestamp() - interval '1 ms'`)
				require.NoError(t, err)
				require.NoError(t, wrong.Sweep(ctx))
				claim, err = wrong.Claim(ctx)
				require.NoError(t, err)
				require.Equal(t, second.EventID, claim.EventID, "a lease that has ended")
				require.WithinDuration(t, first.At, claim.At, time.Hour, "dated by the database")
				require.NoError(t, claim.Begin(ctx))
				require.NoError(t, claim.record(ctx, outcome{state: Pending, reason: "later", pause: time.Hour}))
			})
			require.Equal(t, 1, b.count(t, `select count(*) from lease where event_id = $1
				and due_at between clock_timestamp() + interval '30 min' and clock_timestamp() + interval '61 min'`,
				second.EventID), "the pause is counted on the database's clock")
			require.Equal(t, Uncertain, b.state(t, first.EventID))
			b.requireNoneDue(t)
		})
	}
}
