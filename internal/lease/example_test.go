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

// A process that was stopped for longer than its lease begins no effect.
func ExampleClaim_Begin() {
	ctx := context.Background()
	pool, drop := pgtest.Open(migrations.Lease)
	defer drop()
	leases, err := lease.New(lease.Config{Handler: "parcel", Pool: pool, Settings: lease.DefaultSettings()})
	if err != nil {
		panic(err)
	}
	if _, err := pool.Exec(ctx, lease.Intent, "parcel", "order-42-paid"); err != nil {
		panic(err)
	}
	first, err := leases.Claim(ctx)
	if err != nil {
		panic(err)
	}
	// The process is stopped, its lease ends, and another claims the row.
	if _, err := pool.Exec(ctx, `update lease set due_at = clock_timestamp()`); err != nil {
		panic(err)
	}
	if err := leases.Sweep(ctx); err != nil {
		panic(err)
	}
	if _, err := leases.Claim(ctx); err != nil {
		panic(err)
	}
	fmt.Println(first.Begin(ctx))
	// Output:
	// stale_lease: begin: the lease of parcel on event order-42-paid has been lost
}
