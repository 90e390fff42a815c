package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

const (
	insertOrder  = `insert into shop_order (id, total) values ($1, $2)`
	insertParcel = `insert into parcel (order_id, worth) values ($1, $2)`
)

type Order struct {
	Total int `json:"total"`
}

var OrderPlaced = event.Define[Order](event.Declaration{
	Type: "com.example.shop.order-placed.v1", Topic: "shop.orders.v1", Source: "/shop",
})

// The order and its event commit together, or neither does.
func place(ctx context.Context, db *pgxpool.Pool, out *outbox.Outbox, id string, order Order) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		e, err := OrderPlaced.New(id, 0, time.Now(), order)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertOrder, id, order.Total); err != nil {
			return err
		}
		_, err = out.Add(ctx, tx, e)
		return err
	})
}

// The event's id is recorded in tx, too: however often it is delivered, there is one parcel.
func pack(ctx context.Context, tx pgx.Tx, e event.Event, order Order) error {
	_, err := tx.Exec(ctx, insertParcel, e.Key, order.Total)
	return err
}

// What the README shows is true: one order and one event, or none; and one parcel, however often the event comes.
func TestTheReadmesExample(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, migrations.Audit, migrations.Outbox, migrations.Inbox)
	_, err := db.Exec(t.Context(), `
		create table shop_order (id text primary key, total integer not null check (total > 0));
		create table parcel (order_id text not null, worth integer not null)`)
	require.NoError(t, err)
	out, err := outbox.New(outbox.Config{Source: OrderPlaced.Source})
	require.NoError(t, err)
	mux := inbox.NewMux()
	inbox.Handle(mux, OrderPlaced, pack)
	box, err := inbox.New(inbox.Config{Consumer: "parcels", Pool: db, Accepts: mux.Accepts})
	require.NoError(t, err)

	require.NoError(t, place(t.Context(), db, out, "order-7", Order{Total: 42}))
	require.Error(t, place(t.Context(), db, out, "order-8", Order{}))
	require.Equal(t, 1, count(t, db, `select count(*) from outbox`))

	e, err := OrderPlaced.New("order-7", 1, time.Now(), Order{Total: 42})
	require.NoError(t, err)
	e.ID = uuid.NewString()
	handle := box.Middleware(mux.HandleMessage)
	for range 3 {
		delivered := e.Message()
		delivered.SetContext(t.Context())
		_, err := handle(delivered)
		require.NoError(t, err)
	}
	require.Equal(t, 1, count(t, db, `select count(*) from parcel where order_id = 'order-7' and worth = 42`))
}
