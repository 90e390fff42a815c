package eventing

import (
	"context"

	"example.com/twinbox/internal/service"
)

func (n *Node) CheckSchema(ctx context.Context) error { return n.checkSchema(ctx) }

func (n *Node) StartConsumers(g *service.Group) { n.startConsumers(g) }

func (n *Node) Held() (held int64) {
	for _, c := range n.consumers {
		held += c.held.Load()
	}
	return held
}
