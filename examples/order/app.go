// Package order is an example of a service: it takes orders over HTTP and says so to whoever listens.
package order

import (
	"context"
	"embed"
	"io/fs"
	"net"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/frame/command"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/migrations"
	"example.com/twinbox/ops" // part: ops
)

// Service is Order.
var Service = eventing.Service[Config]{
	Name:       "order",
	Source:     contract.SourceOrder,
	Contract:   contract.Load,
	Migrations: Migrations(),
	Tables:     []string{"orders", "idempotency_key"},
	Adopt:      adopt,
	Operations: ops.Offer, // part: ops
	SetUp:      setUp,
}

//go:embed migrations/*.sql
var files embed.FS

// Migrations lists what the database of Order consists of, in the order of application.
func Migrations() []migrations.Set {
	own, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the name is the one that the embed line has
	}
	return []migrations.Set{migrations.Audit, migrations.Outbox, migrations.Inbox, {Name: "order", FS: own}}
}

// setUp joins commands and API. They stop in the reverse of the order in which they start: no new request, then the
// relay passes on what those still wrote.
func setUp(node *eventing.Node, cfg Config) (start func(*service.Group, net.Listener), err error) {
	orders := &Orders{
		Pool: node.Pool, Outbox: node.Outbox, KeysFor: cfg.IdempotencyTTL, Timeout: cfg.RequestTimeout,
	}
	handler, err := newHandler(orders, cfg, node)
	if err != nil {
		return nil, err
	}
	server := web.NewServer(web.ServerConfig{DrainTimeout: cfg.DrainFor / 2}, handler, node.Log())
	return func(group *service.Group, api net.Listener) {
		group.Go("expired rows", func(ctx context.Context) error { return command.Hourly(ctx, node.Log(), orders.forget) })
		group.Go("http", func(ctx context.Context) error { return server.Serve(ctx, api) })
	}, nil
}

// adopt brings back what a restore took: an event of this service that was published, and that its database does not
// know any more.
func adopt(ctx context.Context, tx pgx.Tx, event cloudevent.Event) error {
	return nil
}
