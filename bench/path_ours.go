package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
)

// ourLine is the two services with their default settings, without the parts that do not lie between a signup and
// the inbox: the HTTP server, Customer's own consumers and the mail sender. Each has its admin listener, its
// metrics and its log, which goes nowhere.
type ourLine struct {
	cfg lineConfig

	customer, notification *node
	commands               *customer.Commands
}

// node is one service's.
type node struct {
	*eventing.Node
	admin *service.Admin
	log   *slog.Logger
	ran   bool // and so has closed itself
}

const pathSecret = "a secret of a benchmark, which is public"

func openOurLine(ctx context.Context, cfg lineConfig) (line, error) {
	var customerConfig customer.Config
	var notificationConfig notification.Config
	if err := errors.Join(
		config.Load(cfg.environ(cfg.customer), &customerConfig),
		config.Load(cfg.environ(cfg.notification, "SMTP_ADDR=127.0.0.1:25"), &notificationConfig), // no mail is sent,
	); err != nil {
		return nil, err
	}
	l := &ourLine{cfg: cfg}
	var err error
	l.customer, err = openNode(ctx, "customer", contract.SourceCustomer, customerConfig.Config, customerConfig.Topics(),
		migrations.ForCustomer())
	if err != nil {
		return nil, err
	}
	l.commands = &customer.Commands{
		Pool: l.customer.Pool, Outbox: l.customer.Outbox,
		Links:   domain.VerificationKey(customerConfig.VerificationSecret),
		KeysFor: customerConfig.IdempotencyTTL, Timeout: customerConfig.RequestTimeout,
	}
	l.notification, err = openNode(ctx, "notification", contract.SourceNotification, notificationConfig.Config,
		notificationConfig.Topics(), migrations.ForNotification())
	if err == nil {
		err = l.notification.Consume(eventing.Consumer{
			Name: "notification.users", Topic: contract.TopicUsers, Handlers: notification.UserEvents(), Order: inbox.Strict,
			OnOutcome: func(e event.Event, outcome inbox.Outcome) {
				if outcome == inbox.Applied {
					cfg.arrived(domain.UserID(e.Key))
				}
			},
		})
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// environ is what a service has to be told; all else is its own default.
func (c lineConfig) environ(db *database, more ...string) []string {
	return append([]string{
		"DATABASE_URL=" + db.dsn, "KAFKA_BROKERS=" + strings.Join(c.brokers, ","), "ENVIRONMENT=" + c.environment,
		"VERIFICATION_SECRET=" + pathSecret,
	}, more...)
}

func openNode(
	ctx context.Context, name, source string, cfg eventing.Config, topics []kafka.Topic, sets []migrations.Set,
) (*node, error) {
	events, err := contract.Load()
	if err != nil {
		return nil, fmt.Errorf("load contract: %w", err)
	}
	n := &node{log: slog.New(slog.DiscardHandler)}
	n.admin = service.NewAdmin(service.AdminConfig{Log: n.log})
	n.Node, err = eventing.Open(ctx, eventing.Setup{
		Service: name, Source: source, Config: cfg, Topics: topics, Migrations: sets, Validate: events.Validate,
		Admin: n.admin, Log: n.log,
	})
	return n, err
}

func (l *ourLine) signUp(ctx context.Context, who person) (domain.UserID, error) {
	answer, err := l.commands.SignUp(ctx, customer.Signup{Key: who.key, Email: who.email, Name: who.name})
	if err != nil {
		return "", err
	}
	return userOf(answer.Body)
}

func (l *ourLine) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range []*node{l.customer, l.notification} {
		n.ran = true
		group.Go(func() error { return n.run(ctx) })
	}
	return group.Wait()
}

func (n *node) run(ctx context.Context) error {
	return n.Run(service.NewGroup(ctx, n.log, stopTimeout), eventing.Listeners{Admin: "127.0.0.1:0"},
		service.Host{Log: n.log}, func(g *service.Group, _ net.Listener) { n.StartConsumers(g) })
}

// verify asks the services themselves, as an operator does, and looks at what they cannot see: the tables of both.
func (l *ourLine) verify(ctx context.Context) error {
	if err := l.proved(ctx); err != nil {
		return err
	}
	return verifyEffects(ctx, l.cfg)
}

func (l *ourLine) close() error {
	var problems []error
	for _, n := range []*node{l.customer, l.notification} {
		if n != nil && n.Node != nil && !n.ran {
			problems = append(problems, n.Close())
		}
	}
	return errors.Join(problems...)
}
