// Package ledger is an example of a service: accounts with credits, debits and a balance to read.
//
// The write side (commands.go, open.go, move.go) holds no lock while it decides. It reads an account, applies a rule of
// package account, and stores the account and the event at the next version. Of two commands that read the same
// version, the outbox lets one through. The read side (balance.go) consumes the same events in the order of their
// versions. GET answers from it alone. app.go joins both.
package ledger

import (
	"context"
	"embed"

	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/migrations"
)

var Service = eventing.Service[Config]{
	Name:       "ledger",
	Source:     contract.SourceLedger,
	Contract:   contract.Load,
	API:        openAPI,
	Migrations: Migrations(),
	Operations: offerOperations,
	Checks:     checks,
	SetUp:      setUp,
}

//go:generate env CGO_ENABLED=0 go run example.com/twinbox/dev/tools/apijson openapi.yaml openapi.gen.json

//go:embed openapi.gen.json
var openAPI []byte

//go:embed migrations/*.sql
var files embed.FS

func Migrations() []migrations.Set {
	return []migrations.Set{
		migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Folder("ledger", files, "migrations"),
		migrations.Command,
	}
}

const balanceConsumer = "ledger.balance"

// setUp joins write side, read side and API. They stop in the reverse order: no new request, no new record, then the
// relay publishes the rest.
func setUp(node *eventing.Node, cfg Config) error {
	commands := &Commands{
		Transaction: command.Transaction{Pool: node.Pool, Timeout: cfg.RequestTimeout},
		Outbox:      node.Outbox, KeysFor: cfg.IdempotencyTTL, Attempts: cfg.CommandAttempts,
	}
	handler := newHandler(commands, web.Config{
		RequestTimeout: cfg.RequestTimeout, Registerer: node.Admin.Registry(), Traces: node.Traces,
	}, node.Log)
	node.Serve(cfg.Server(cfg.RequestTimeout, handler, node.Log).Serve)
	node.Go("expired rows", func(ctx context.Context) error {
		return command.ForgetHourly(ctx, node.Log, node.Pool, command.DeleteExpiredAnswers)
	})
	return node.Consume(balances())
}

// balances builds the read side. While a movement is missing, the later ones of its account are parked.
func balances() eventing.Consumer {
	return eventing.Consumer{
		Name: balanceConsumer, Topic: contract.TopicAccounts, Handlers: balanceEvents(), Order: inbox.Strict,
	}
}
