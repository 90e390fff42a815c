// Package ops offers the operations of a service's node on its admin listener; see package admin for what they are. A
// clone may leave the whole part out: a service names it in one line, its [eventing.Setup.Operations].
package ops

import (
	"net/http"

	"example.com/twinbox/internal/inbox/replay"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/service/eventing"
)

// Offer makes the operations of a service that sends no mails and whose events are all that there is to tell.
func Offer(node *eventing.Node) (prefix string, handler http.Handler, err error) {
	return OfferWith(node, Own{})
}

// Own is what a service adds to the operations. All of it is optional.
type Own struct {
	Mails admin.Mails  // its list of mails
	Tell  admin.Teller // what its own tables know of an id
}

// OfferWith makes the operations of a service that has something of its own to add.
func OfferWith(node *eventing.Node, own Own) (prefix string, handler http.Handler, err error) {
	inside := eventing.Operable{Node: node}
	setup := inside.Setup()
	var consumers []admin.Consumer
	inside.EachConsumer(func(name string, replays *replay.Replayer) {
		consumers = append(consumers, admin.Consumer{Name: name, Replay: replays.Replay})
	})
	handler, err = admin.New(admin.Config{
		Service:     setup.Service,
		Environment: setup.Config.Environment,
		Token:       setup.Config.AdminToken.Reveal(),
		Pool:        node.Pool,
		Publisher:   inside.Publisher(),
		Topics:      inside,
		Restore:     inside,
		Consumers:   consumers,
		Paused:      inside.LookForPauses,
		Metrics:     node.Admin.Registry(),
		Mails:       own.Mails,
		Verifier:    node.Verifier,
		Cause:       node.Cause,
		Tell:        own.Tell,
		Log:         node.Log,
	})
	return admin.Prefix, handler, err
}
