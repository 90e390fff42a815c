package notification

import (
	"context"
	"log/slog"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service/circuit"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
)

// Service is Notification.
var Service = eventing.Service[Config]{
	Name:       "notification",
	Source:     contract.SourceNotification,
	Contract:   contract.Load,
	Migrations: migrations.ForNotification(),
	Operations: offerOperations,
	Checks:     checks,
	SetUp:      setUp,
}

// The inbox remembers events under this name.
const usersConsumer = "notification.users"

// The consumer stops before the sender, and the relay publishes what both wrote.
func setUp(node *eventing.Node, cfg Config) error {
	mailer, admin := &mail.Sender{Config: cfg.SMTP, From: cfg.MailFrom}, node.Admin
	mailServer := mail.NewCircuit(mailer, node.Log, admin.Registry())
	admin.Check("mail server", func(context.Context) error { return mailServer.Ready() })
	log := slog.New(circuit.Quiet(node.Log.Handler(), mailServer))
	sender, err := newSender(Sender{
		settings: cfg.Mail, pool: node.Pool, outbox: node.Outbox, log: log, registerer: admin.Registry(),
		writer: cfg.writer(), smtp: mailer, suspect: mailServer.Suspect,
		spans: node.Spans,
	})
	if err != nil {
		return err
	}
	node.Check("mails", sender.Healthy)
	admin.Explain(mail.Why(node.Pool, handlerVerification, mailServer))
	node.Go("mail server circuit", mailServer.Run)
	node.GoUntilSignal("mail sender", sender.Run)
	admin.Measure("mails", sender.Measure)
	return node.Consume(eventing.Consumer{
		Name: usersConsumer, Topic: contract.TopicUsers, Handlers: UserEvents(), Order: inbox.Strict,
		OnOutcome: func(e event.Event, outcome inbox.Outcome) {
			if outcome == inbox.Applied && e.Type == contract.UserRegistered.Type {
				sender.Wake()
			}
		},
	})
}
