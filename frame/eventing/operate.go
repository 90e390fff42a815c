package eventing

import (
	"fmt"

	"example.com/twinbox/ops/admin"
)

// offerOperations puts what operates the service on its admin listener. It comes before the database is known to
// answer: during an outage an operator is told so, instead of finding nothing there.
func (n *Node) offerOperations() error {
	consumers := make([]admin.Consumer, len(n.consumers))
	for i, c := range n.consumers {
		consumers[i] = admin.Consumer{Name: c.Name, Replay: c.replays.Replay}
	}
	handler, err := admin.New(admin.Config{
		Service:     n.setup.Service,
		Environment: n.setup.Config.Environment,
		Token:       n.setup.Config.AdminToken.Reveal(),
		Pool:        n.Pool,
		Publisher:   n.publisher,
		Topics:      topicsOf(n.setup),
		Restore:     n.restore,
		Consumers:   consumers,
		Metrics:     n.setup.Admin.Registry(),
		Mails:       n.Mails,
		Log:         n.setup.Log,
	})
	if err != nil {
		return fmt.Errorf("offer operations: %w", err)
	}
	n.setup.Admin.Handle(admin.Prefix, handler)
	return nil
}
