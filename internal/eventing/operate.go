package eventing

import (
	"fmt"

	"example.com/twinbox/internal/admin"
)

// offerOperations puts what operates the service on its admin listener. It comes before the database is known to
// answer: during an outage an operator is told so, instead of finding nothing there.
func (n *Node) offerOperations() error {
	names := make([]string, len(n.consumers))
	for i, c := range n.consumers {
		names[i] = c.Name
	}
	handler, err := admin.New(admin.Config{
		Service:   n.setup.Service,
		Token:     n.setup.Config.AdminToken.Reveal(),
		Pool:      n.Pool,
		Publisher: n.publisher,
		Consumers: names,
		Log:       n.setup.Log,
	})
	if err != nil {
		return fmt.Errorf("offer operations: %w", err)
	}
	n.setup.Admin.Handle(admin.Prefix, handler)
	return nil
}
