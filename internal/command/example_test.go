package command_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

const countStock = `select count(*) from outbox where key = 'stock'`

func addToStock(ctx context.Context, pool *pgxpool.Pool, box *outbox.Outbox) (version int64, err error) {
	whole := command.Transaction{Pool: pool, Timeout: time.Minute}
	return version, whole.Run(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, countStock).Scan(&version); err != nil {
			return err
		}
		version++
		_, err := box.Add(ctx, tx, event.Event{
			Type: "added", Topic: "stock", Key: "stock", Version: version, Data: []byte("{}"),
		})
		return err
	})
}

func ExampleRetry() {
	ctx := context.Background()
	pool, drop := pgtest.Open(migrations.Outbox)
	defer drop()
	box, err := outbox.New(outbox.Config{Source: "/shop"})
	if err != nil {
		panic(err)
	}
	version, err := command.Retry(ctx, 10, func(ctx context.Context) (int64, error) {
		return addToStock(ctx, pool, box)
	})
	fmt.Println(version, err)
	// Output: 1 <nil>
}
