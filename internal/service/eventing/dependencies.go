package eventing

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

// openCircuits makes the circuits of the two servers without which the node is not ready.
func (n *Node) openCircuits(setup Setup, database *pgx.ConnConfig) {
	n.database = circuit.New(circuit.Config{
		Name: "database", Probe: probeDatabase(database), OnUp: func() { n.Pool.Reset() },
		Log: setup.Log, Registerer: setup.Admin.Registry(),
	})
	n.broker = circuit.New(circuit.Config{
		Name: "broker", Probe: func(ctx context.Context) error { return kafka.Ping(ctx, setup.client) },
		Log: setup.Log, Registerer: setup.Admin.Registry(),
	})
}

// During an outage requireUp only waits: the report names it once.
func requireUp(check func(context.Context) error, servers ...*circuit.Circuit) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, server := range servers {
			if down, is := errors.AsType[*circuit.DownError](server.Err()); is {
				return service.Waiting(down.Name)
			}
		}
		return check(ctx)
	}
}
