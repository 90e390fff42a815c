package eventing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/circuit"
	"example.com/twinbox/internal/service/tracing"
	"example.com/twinbox/migrations"
)

// Setup configures a [Node]. Only Declared is optional.
type Setup struct {
	Service    string
	Source     string // of its events
	Config     Config
	Migrations []migrations.Set
	Topics     []kafka.Topic           // that it writes to, without those for copies of dead letters
	Validate   func(event.Event) error // the contract, on both sides
	Declared   []event.Declaration     // optional: consumers are compared with them
	Admin      *service.Admin
	Log        *slog.Logger
}

// Node is the events of one service: written and consumed.
type Node struct {
	Pool   *pgxpool.Pool
	Outbox *outbox.Outbox
	Admin  *service.Admin
	// Log leaves out the errors of an outage, which its circuit logs.
	Log *slog.Logger
	// Traces gives requests their spans, also without a collector.
	Traces trace.TracerProvider
	Spans  *event.Spans // nil: spans go nowhere

	setup         Setup
	client        kafka.Config
	database      *circuit.Circuit
	broker        *circuit.Circuit
	relayDatabase *pgx.ConnConfig
	exported      *sdktrace.TracerProvider // nil: spans go nowhere
	publisher     *kafka.Publisher
	relay         *relay.Relay
	tasks         []task
	consumers     []*consumer
	serveAPI      func(context.Context, net.Listener) error // nil: there is no API
	pauses        *service.Shared[map[string]inbox.Paused]
	topics        []kafka.Topic
	written       *prometheus.GaugeVec
	copies        *prometheus.CounterVec
	bound         service.Listeners // from Run on
}

type task struct {
	name        string
	run         func(context.Context) error
	untilSignal bool
}

// Open prepares the node and connects to nothing.
func Open(ctx context.Context, setup Setup) (node *Node, err error) {
	cfg, registry := setup.Config, setup.Admin.Registry()
	n := &Node{
		Admin: setup.Admin, Traces: otel.GetTracerProvider(), setup: setup, client: cfg.Client(setup.Service),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if err := n.openDatabase(ctx); err != nil {
		return nil, err
	}
	n.broker = circuit.New(circuit.Config{
		Name: "broker", Probe: func(ctx context.Context) error { return kafka.Ping(ctx, n.client) },
		Log: setup.Log, Registerer: registry,
	})
	n.Log = slog.New(circuit.Quiet(setup.Log.Handler(), n.database, n.broker))
	n.exported, err = tracing.New(ctx, cfg.Tracing, setup.Service, cfg.Environment, n.Log, registry)
	if err != nil {
		return nil, err
	}
	if n.exported != nil {
		n.Traces, n.Spans = n.exported, event.NewSpans(n.exported)
	}
	n.Outbox, err = outbox.New(outbox.Config{
		MaxEventBytes: cfg.Outbox.MaxEventBytes,
		Validate:      validateUnlessCopy(setup.Validate),
		OnConflict:    outbox.OnConflict(cfg.Outbox.OnConflict),
		Log:           n.Log,
		Registerer:    registry,
		Spans:         n.Spans,
	})
	if err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	client := n.client
	client.RetryFor = min(retryFor, client.PublishTimeout/2)
	if n.publisher, err = kafka.NewPublisher(client, n.Log); err != nil {
		return nil, fmt.Errorf("open publisher: %w", err)
	}
	if n.relay, err = relay.New(n.relayConfig()); err != nil {
		return nil, fmt.Errorf("open relay: %w", err)
	}
	n.pauses = &service.Shared[map[string]inbox.Paused]{
		Timeout: pausesAge, Age: pausesAge,
		Ask: func(ctx context.Context) (map[string]inbox.Paused, error) { return inbox.ReadPaused(ctx, n.Pool) },
	}
	n.measure()
	n.addChecks()
	n.explain()
	return n, nil
}

const pausesAge = time.Second

// retryFor is short: the relay tries again too, and publishes elsewhere.
const retryFor = 500 * time.Millisecond

func (n *Node) relayConfig() relay.Config {
	cfg := n.setup.Config
	return relay.Config{
		Connect:        n.connectRelay,
		Publisher:      n.publisher,
		Topics:         namesOf(n.setup.Topics),
		HealWithin:     max(cfg.Outbox.HealWithin, time.Nanosecond), // 0 would be the relay's default
		GroupTimeout:   cfg.Kafka.SessionTimeout,
		Destination:    n.broker,
		Wake:           n.Outbox.Wake(),
		Listen:         cfg.Outbox.Notify,
		Scheduled:      n.Outbox,
		BatchSize:      cfg.Outbox.BatchSize,
		PollMax:        cfg.poll(),
		Lease:          cfg.Outbox.Lease,
		PublishTimeout: cfg.Kafka.PublishTimeout,
		Retention:      cfg.Outbox.Retention,
		IDRetention:    cfg.Inbox.Retention,
		MaxSilence:     cfg.maxSilence(),
		Log:            n.Log,
		Registerer:     n.Admin.Registry(),
		Spans:          n.Spans,
	}
}

func (n *Node) addChecks() {
	n.Admin.Check("database", func(context.Context) error { return n.database.Ready() })
	n.Admin.Check("broker", func(context.Context) error { return n.broker.Ready() })
	n.Check("tables", n.checkTables)
	n.Admin.Check("relay", requireUp(n.relay.Healthy, n.database, n.broker))
	n.Admin.Check("held events", requireUp(func(ctx context.Context) error {
		return relay.CheckHeld(ctx, n.Pool, n.setup.Config.maxSilence())
	}, n.database, n.broker))
}

// Check adds a readiness check that needs the database.
func (n *Node) Check(name string, check func(context.Context) error) {
	n.Admin.Check(name, requireUp(check, n.database))
}

func requireUp(check func(context.Context) error, servers ...*circuit.Circuit) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, server := range servers {
			if err := server.Err(); err != nil {
				return err
			}
		}
		return check(ctx)
	}
}

// Go adds a task, which starts before the consumers and stops after them: see [service.Group.Go].
func (n *Node) Go(name string, run func(context.Context) error) {
	n.tasks = append(n.tasks, task{name, run, false})
}

// GoUntilSignal is [Node.Go] for a task whose context ends with the process's signal, before its turn to stop. What it
// has under way then ends while the consumers stop.
func (n *Node) GoUntilSignal(name string, run func(context.Context) error) {
	n.tasks = append(n.tasks, task{name, run, true})
}

func (t task) runUntil(ctx, turn context.Context) error {
	if !t.untilSignal {
		return t.run(turn)
	}
	err := t.run(ctx)
	if err == nil && ctx.Err() != nil {
		<-turn.Done()
	}
	return err
}

// Serve adds the API, such as a [web.Server]'s Serve. It starts last and stops first.
func (n *Node) Serve(api func(ctx context.Context, ln net.Listener) error) { n.serveAPI = api }

const flushTimeout = 2 * time.Second

// Close sends the waiting spans and closes all connections. [Node.Run] calls it.
func (n *Node) Close() error {
	if n.Pool != nil {
		n.Pool.Close()
	}
	if n.exported != nil {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		_ = n.exported.Shutdown(ctx) // a missing collector delays no stop
	}
	if n.publisher == nil {
		return nil
	}
	if err := n.publisher.Close(); err != nil {
		return fmt.Errorf("close publisher: %w", err)
	}
	return nil
}
