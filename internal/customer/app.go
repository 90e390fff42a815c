package customer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/migrations"
	"example.com/twinbox/ops"
)

const name = "customer"

// The consumers, by the names under which their inboxes remember.
const (
	profileConsumer = "customer.profile"
	mailConsumer    = "customer.mail"
)

// Topics are the topics this service writes to.
func (c Config) Topics() []kafka.Topic {
	return c.Config.Topics(contract.TopicUsers,
		c.CopyTopic(profileConsumer, contract.TopicUsers), c.CopyTopic(mailConsumer, contract.TopicMails))
}

// Run is the service, from its configuration to the end of ctx and the drain after it. It stops in the reverse of the
// order in which it starts: no new request, no new record, then the relay passes on what those still wrote.
func Run(ctx context.Context, cfg Config, host service.Host) error {
	group := service.NewGroup(ctx, host.Log, cfg.DrainFor)
	admin := service.NewAdmin(service.AdminConfig{
		Log: host.Log, Draining: group.Draining(), Hosts: cfg.AdminNames(cfg.AdminAddr),
	})
	app, err := open(ctx, cfg, host, admin)
	if err != nil {
		return err
	}
	return app.node.Run(ctx, group, eventing.Listeners{Admin: cfg.AdminAddr, API: cfg.HTTPAddr}, host, app.start)
}

// app is the service, set up and not started.
type app struct {
	cfg      Config
	node     *eventing.Node
	commands *Commands
	server   *web.Server
}

func open(ctx context.Context, cfg Config, host service.Host, admin *service.Admin) (*app, error) {
	events, err := contract.Load()
	if err != nil {
		return nil, fmt.Errorf("load contract: %w", err)
	}
	node, err := eventing.Open(ctx, eventing.Setup{
		Service: name, Config: cfg.Config, Topics: cfg.Topics(), Migrations: migrations.ForCustomer(),
		Tables: []string{"users", "idempotency_key", "signup_allowance", "profile", "verification_mail"},
		Source: contract.SourceCustomer, Adopt: adopt,
		Validate: events.Validate, Admin: admin, Log: host.Log,
		Operations: ops.Offer, // part: ops
	})
	if err != nil {
		return nil, err
	}
	a := &app{cfg: cfg, node: node, commands: NewCommands(CommandsConfig{
		Pool:    node.Pool,
		Outbox:  node.Outbox,
		Links:   domain.VerificationKey(cfg.VerificationSecret),
		KeysFor: cfg.IdempotencyTTL,
		Timeout: cfg.RequestTimeout, Allowances: cfg.allowances(),
	})}
	if err := errors.Join(a.consume(), a.serveHTTP(admin)); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return a, nil
}

// consume names what the read side is built from.
func (a *app) consume() error {
	return errors.Join(
		a.node.Consume(eventing.Consumer{
			Name: profileConsumer, Topic: contract.TopicUsers, Handlers: ProfileEvents(), Versioned: true,
		}),
		a.node.Consume(eventing.Consumer{
			Name: mailConsumer, Topic: contract.TopicMails, Handlers: MailEvents(),
		}),
	)
}

func (a *app) serveHTTP(admin *service.Admin) error {
	handler, err := newHandler(&api{commands: a.commands, profiles: a.node.Pool}, a.cfg, admin.Registry(), a.node.Log())
	if err != nil {
		return err
	}
	a.server = web.NewServer(a.cfg.server(), handler, a.node.Log())
	return nil
}

// server bounds the connections. A request that is too slow, by its body or by its transaction, is told so: whichever
// of the two may take longer leaves time for the answer.
func (c Config) server() web.ServerConfig {
	bounds := web.ServerConfig{DrainTimeout: c.DrainFor / 2, MaxConnections: c.MaxConnections}.WithDefaults()
	bounds.WriteTimeout = max(bounds.ReadTimeout, c.RequestTimeout) + 5*time.Second
	return bounds
}

// start starts what writes and consumes, in the order in which they need each other.
func (a *app) start(group *service.Group, api net.Listener) {
	group.Go("expired rows", a.forget)
	a.node.StartConsumers(group)
	group.Go("http", func(ctx context.Context) error { return a.server.Serve(ctx, api) })
}

// forget deletes expired idempotency keys and allowances now and every hour.
func (a *app) forget(ctx context.Context) error {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		err := errors.Join(a.commands.forgetKeys(ctx), a.commands.forgetAllowances(ctx))
		if err != nil && ctx.Err() == nil {
			a.node.Log().WarnContext(ctx, "expired rows not deleted", "error", err)
		}
		select {
		case <-hourly.C:
		case <-ctx.Done():
			return nil
		}
	}
}
