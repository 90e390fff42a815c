// Package ops offers the operations of a service's node on its admin listener; package admin describes them. A service
// names them in one line, its [eventing.Service.Operations].
package ops

import (
	"net/http"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
)

// Own is what a service adds to the operations. All of it is optional.
type Own struct {
	Mails  admin.Mails    // its list of mails
	Tell   admin.Teller   // finds what its own tables hold under an id
	Checks []verify.Check // of its own tables, which run with each verification
}

// Offer makes the operations of a service, for its [eventing.Service.Operations].
func Offer(node *eventing.Node, own Own) (prefix string, handler http.Handler, err error) {
	inside := eventing.Operable{Node: node}
	setup := inside.Setup()
	var consumers []admin.Consumer
	inside.EachConsumer(func(name string, replays *inbox.Replayer) {
		consumers = append(consumers, admin.Consumer{Name: name, Replay: replays.Replay})
	})
	records, _ := inside.Publisher().(admin.Records)
	handler, err = admin.New(admin.Config{
		Service:     setup.Service,
		Environment: setup.Config.Environment,
		Token:       setup.Config.AdminToken.Reveal(),
		Pool:        node.Pool,
		Publisher:   inside.Publisher(),
		Topics:      inside,
		Records:     records,
		Consumers:   consumers,
		Metrics:     node.Admin.Registry(),
		Mails:       own.Mails,
		Verifier:    eventing.NewVerifier(node, own.Checks...),
		Cause:       node.Cause,
		Tell:        own.Tell,
		Log:         node.Log,
	})
	return admin.Prefix, handler, err
}
