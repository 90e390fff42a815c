// Package order is an example of a service: it takes orders over HTTP, reads events of their payments, mails receipts,
// and cancels what is not paid in time.
//
//	http.go commands.go    what a client may do
//	order.go               the rules
//	payments.go            what events do: a payment, the end of the time to pay
//	receipt.go             the mail
//	operate.go             what operators see of receipts
package order

import (
	"context"
	"embed"
	"errors"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
)

var Service = eventing.Service[Config]{
	Name:       "order",
	Source:     contract.SourceOrder,
	Contract:   contract.Load,
	API:        openAPI,
	Migrations: Migrations(),
	Operations: offerOperations,
	SetUp:      setUp,
}

//go:generate env CGO_ENABLED=0 go run example.com/twinbox/dev/tools/apijson openapi.yaml openapi.gen.json

//go:embed openapi.gen.json
var openAPI []byte

//go:embed migrations/*.sql
var files embed.FS

func Migrations() []migrations.Set {
	return []migrations.Set{
		migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Lease,
		migrations.Folder("order", files, "migrations"), migrations.Command,
	}
}

const (
	paymentConsumer = "order.payments"
	timerConsumer   = "order.timers"
)

// setUp joins commands, consumers, mails and API. They stop in the reverse order: no new request, no new record, then
// the mails under way are sent, then the relay publishes the rest.
func setUp(node *eventing.Node, cfg Config) error {
	commands := &Commands{
		Transaction: command.Transaction{Pool: node.Pool, Timeout: cfg.RequestTimeout},
		Outbox:      node.Outbox, PayWithin: cfg.PayWithin, KeysFor: cfg.IdempotencyTTL,
	}
	handler := newHandler(commands, cfg, node)
	mails, err := newReceipts(node, cfg)
	if err != nil {
		return err
	}
	node.Check("mails", mails.Healthy)
	node.Admin.Explain(mail.Why(node.Pool, handlerReceipt, nil))
	node.Serve(cfg.Server(cfg.RequestTimeout, handler, node.Log).Serve)
	handles := handlers{node.Outbox}
	wake := func(_ event.Event, outcome inbox.Outcome) {
		if outcome == inbox.Applied {
			mails.Wake()
		}
	}
	node.Go("expired rows", func(ctx context.Context) error {
		return command.ForgetHourly(ctx, node.Log, node.Pool, command.DeleteExpiredAnswers)
	})
	node.GoUntilSignal("receipts", mails.Run)
	node.Admin.Measure("mails", mails.Measure)
	return errors.Join(
		node.Consume(eventing.Consumer{
			Name: paymentConsumer, Topic: contract.TopicPayments, Handlers: handles.paymentEvents(), OnOutcome: wake,
		}),
		node.Consume(eventing.Consumer{
			Name: timerConsumer, Topic: contract.TopicTimers, Handlers: handles.timerEvents(),
		}),
	)
}
