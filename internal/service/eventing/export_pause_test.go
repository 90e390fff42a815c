package eventing

import "context"

func (n *Node) Paused(consumer string) bool {
	for _, c := range n.consumers {
		if c.Name == consumer {
			return !c.running.Load()
		}
	}
	return false
}

func (n *Node) Held() (held int64) {
	for _, c := range n.consumers {
		held += c.held.Load()
	}
	return held
}

func (n *Node) LookForPauses(ctx context.Context) { n.lookForPauses(ctx) }
