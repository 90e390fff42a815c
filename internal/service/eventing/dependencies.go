package eventing

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

// The node is ready only with both servers.
type dependencies struct {
	database, broker *circuit.Circuit
	brokerBack       *atomic.Int64 // in Unix seconds; 0: no outage yet
}

func newDependencies(setup Setup, probeDatabase func(context.Context) error, resetPool func()) dependencies {
	client, registry := setup.client, setup.Admin.Registry()
	brokerBack := new(atomic.Int64)
	return dependencies{
		brokerBack: brokerBack,
		database: circuit.New(circuit.Config{
			Name: "database", Probe: probeDatabase, OnUp: resetPool, Log: setup.Log, Registerer: registry,
		}),
		broker: circuit.New(circuit.Config{
			Name: "broker", Probe: func(ctx context.Context) error { return kafka.Ping(ctx, client) },
			OnUp: func() { brokerBack.Store(time.Now().Unix()) }, Log: setup.Log, Registerer: registry,
		}),
	}
}

// report asks both servers: a lost connection does not show where it led.
func (d dependencies) report(err error) {
	d.database.Report(err)
	d.broker.Report(err)
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
