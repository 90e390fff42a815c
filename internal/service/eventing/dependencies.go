package eventing

import (
	"context"
	"sync/atomic"
	"time"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
)

// dependencies are the servers without which the node is not ready, one circuit each. All tasks of the node wait on
// them, so an outage of any length is two log lines, and all tasks go on at its end.
type dependencies struct {
	database, broker *circuit.Circuit
	brokerBack       *atomic.Int64 // in Unix seconds; 0: the broker has not been away
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

// needsDatabase is a check of something that cannot work while the database is down. Then it says only that it waits,
// so that the report names an outage once.
func (d dependencies) needsDatabase(check func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if d.database.Down() {
			return service.Waiting("database")
		}
		return check(ctx)
	}
}

// behind is a check of something that needs the broker as well.
func (d dependencies) behind(check func(context.Context) error) func(context.Context) error {
	return d.needsDatabase(func(ctx context.Context) error {
		if d.broker.Down() {
			return service.Waiting("broker")
		}
		return check(ctx)
	})
}

// wait is how deliveries wait for their next attempt: at most as long as asked for, but not before the database is
// there, and no longer than it takes to come back.
func (d dependencies) wait(ctx context.Context, failure error, pause time.Duration) error {
	d.database.Report(failure)
	if err := d.database.Pause(ctx, pause); err != nil {
		return err
	}
	return d.database.Await(ctx)
}

// report tells both circuits: a lost connection does not say which server it led to.
func (d dependencies) report(err error) {
	d.database.Report(err)
	d.broker.Report(err)
}

// tell reports whether an error belongs to an outage that the circuits tell of, or are about to: each says once what
// relay, mail sender, API and the consumers of all partitions would say with every attempt.
func (d dependencies) tell(err error) bool {
	return circuit.Suspicious(err) && (d.database.Unsettled() || d.broker.Unsettled())
}
