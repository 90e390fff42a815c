package notification

import (
	"context"
	"errors"
	"fmt"
	"net"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
)

const name = "notification"

// usersConsumer is the consumer, by the name under which its inbox remembers.
const usersConsumer = "notification.users"

// Topics are the topics this service writes to.
func (c Config) Topics() []kafka.Topic {
	return c.Config.Topics(contract.TopicMails, c.CopyTopic(usersConsumer, contract.TopicUsers))
}

// Run is the service, from its configuration to the end of ctx and the drain after it. It stops in the reverse of the
// order in which it starts: no new record, then the mails under way are sent, then the relay passes on what they wrote.
func Run(ctx context.Context, cfg Config, host service.Host) error {
	group := service.NewGroup(ctx, host.Log, cfg.DrainFor)
	admin := service.NewAdmin(service.AdminConfig{
		Log: host.Log, Draining: group.Draining(), Hosts: cfg.AdminNames(cfg.AdminAddr),
	})
	events, err := contract.Load()
	if err != nil {
		return fmt.Errorf("load contract: %w", err)
	}
	node, err := eventing.Open(ctx, eventing.Setup{
		Service: name, Config: cfg.Config, Topics: cfg.Topics(), Migrations: migrations.ForNotification(),
		Tables: []string{"contact", "mail", "lease"},
		Source: contract.SourceNotification, Adopt: adopt,
		Validate: events.Validate, Admin: admin, Log: host.Log,
		Operations: offerOperations, // part: ops
	})
	if err != nil {
		return err
	}
	smtp := &smtpSender{cfg: cfg.SMTP, from: cfg.MailFrom}
	mailServer, err := newMailServer(smtp, host.Log, admin.Registry())
	if err != nil {
		return errors.Join(err, node.Close())
	}
	admin.Check("mail server", func(context.Context) error { return mailServer.Err() })
	sender, err := newSender(senderSetup{
		settings: cfg.Mail, pool: node.Pool, outbox: node.Outbox, log: node.Log(), registerer: admin.Registry(),
		writer: cfg.writer(), smtp: smtp, suspect: mailServer.Suspect,
	})
	if err != nil {
		return errors.Join(err, node.Close())
	}
	err = node.Consume(eventing.Consumer{
		Name: usersConsumer, Topic: contract.TopicUsers, Handlers: UserEvents(), Versioned: true,
		OnOutcome: func(event cloudevent.Event, outcome inbox.Outcome) {
			if outcome == inbox.Applied && event.Type == contract.UserRegistered.Type {
				sender.Wake()
			}
		},
	})
	if err != nil {
		return errors.Join(err, node.Close())
	}
	if err := admin.Measure("mails", sender.leases.Gauges()); err != nil {
		return errors.Join(err, node.Close())
	}
	node.Check("mails", sender.runner.Healthy)
	return node.Run(ctx, group, eventing.Listeners{Admin: cfg.AdminAddr}, host,
		func(group *service.Group, _ net.Listener) {
			group.Go("mail server circuit", mailServer.Run)
			group.Go("mail sender", sender.Run)
			node.StartConsumers(group)
		})
}
