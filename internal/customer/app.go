package customer

import (
	"context"
	"errors"

	contracts "example.com/twinbox/api"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
)

// Service is Customer.
var Service = eventing.Service[Config]{
	Name:       "customer",
	Source:     contract.SourceCustomer,
	Contract:   contract.Load,
	API:        contracts.OpenAPI,
	Migrations: migrations.ForCustomer(),
	Operations: offerOperations,
	Checks:     checks,
	SetUp:      setUp,
}

// The inboxes remember events under these names.
const (
	profileConsumer = "customer.profile"
	mailConsumer    = "customer.mail"
)

var deleteExpired = []string{command.DeleteExpiredAnswers, deleteUnusedAllowances}

// The API stops first, and the relay publishes what it wrote.
func setUp(node *eventing.Node, cfg Config) error {
	commands := &Commands{
		Pool:    node.Pool,
		Outbox:  node.Outbox,
		Links:   domain.VerificationKey(cfg.VerificationSecret),
		KeysFor: cfg.IdempotencyTTL,
		Timeout: cfg.RequestTimeout, Allowances: cfg.allowances(),
	}
	handler := newHandler(&api{commands}, cfg, node.Admin.Registry(), node.Traces, node.Log)
	server := cfg.Server(cfg.RequestTimeout, handler, node.Log)
	server.MaxConnections = cfg.MaxConnections
	node.Serve(server.Serve)
	node.Go("expired rows", func(ctx context.Context) error {
		return command.ForgetHourly(ctx, node.Log, node.Pool, deleteExpired...)
	})
	return errors.Join(
		node.Consume(eventing.Consumer{
			Name: profileConsumer, Topic: contract.TopicUsers, Handlers: ProfileEvents(), Order: inbox.Strict,
		}),
		node.Consume(eventing.Consumer{
			Name: mailConsumer, Topic: contract.TopicMails, Handlers: MailEvents(),
		}),
	)
}
