package lease_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/lease"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// A carrier's API has no transaction.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	pool, drop := pgtest.Open(migrations.Lease)
	defer drop()

	// In an event's handler, in the transaction of its inbox row.
	_, err := pool.Exec(ctx, lease.Intent, "parcel", "order-42-paid")
	fmt.Println("intent:", err)

	cfg := lease.Config{Handler: "parcel", Pool: pool, Settings: lease.DefaultSettings()}
	cfg.Effect = lease.Effect{
		Do: func(ctx context.Context, c *lease.Claim) error {
			// Prepare, connect, ask: steps that can be undone. Then:
			if err := c.Begin(ctx); err != nil {
				return err
			}
			fmt.Println("handed over:", c.EventID, "attempt", c.Attempt)
			return nil
		},
		Done: func(ctx context.Context, tx pgx.Tx, c *lease.Claim, at time.Time) error {
			return nil // add "parcel handed over" to the outbox here
		},
		Committed: func(*lease.Claim) { stop() },
	}
	runner, err := lease.New(cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println("stopped:", runner.Run(ctx))
	// Output:
	// intent: <nil>
	// handed over: order-42-paid attempt 1
	// stopped: <nil>
}
