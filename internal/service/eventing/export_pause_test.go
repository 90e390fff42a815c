package eventing

import "context"

// Paused reports whether this process holds the consumer's deliveries back.
func (n *Node) Paused(consumer string) bool {
	for _, c := range n.consumers {
		if c.Name == consumer {
			return !c.running.Load()
		}
	}
	return false
}

// Held is how many deliveries wait in this process for their consumer to be resumed.
func (n *Node) Held() (held int64) {
	for _, c := range n.consumers {
		held += c.held.Load()
	}
	return held
}

// LookForPauses asks the database once.
func (n *Node) LookForPauses(ctx context.Context) { n.lookForPauses(ctx) }
