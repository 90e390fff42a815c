// Package ops offers the operations of a service on its admin listener; see [eventing.Service.Operations].
package ops

import (
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/service/eventing"
)

// Own is what a service adds to the operations. All of it is optional.
type Own struct {
	Mails *admin.MailList
	Tell  admin.Teller
}

// Offer adds the operations to the node's admin listener.
func Offer(node *eventing.Node, own Own) error {
	inside := eventing.Operable{Node: node}
	setup := inside.Setup()
	var consumers []admin.Consumer
	inside.EachConsumer(func(name, topic string, replays *inbox.Replayer) {
		consumers = append(consumers, admin.Consumer{Name: name, Topic: topic, Replay: replays.Replay})
	})
	handler, err := admin.New(admin.Config{
		Service:     setup.Service,
		Environment: setup.Config.Environment,
		Token:       setup.Config.AdminToken.Reveal(),
		Pool:        node.Pool,
		Publisher:   inside.Publisher(),
		Topics:      inside,
		Records:     inside.Publisher(),
		Consumers:   consumers,
		Metrics:     node.Admin.Registry(),
		Mails:       own.Mails,
		Readiness:   node.Admin.Readiness,
		Tell:        own.Tell,
		Log:         node.Log,
	})
	if err == nil {
		node.Admin.Handle(admin.Prefix, handler)
	}
	return err
}
