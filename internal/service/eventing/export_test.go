package eventing

import "example.com/twinbox/internal/service"

func (n *Node) StartConsumers(g *service.Group) { n.startConsumers(g) }

func (n *Node) Held() (held int64) {
	for _, c := range n.consumers {
		held += c.held.Load()
	}
	return held
}
