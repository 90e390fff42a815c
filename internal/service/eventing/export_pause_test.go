package eventing

// Paused says whether this process holds the consumer's deliveries back.
func (n *Node) Paused(consumer string) bool { return !n.gates.IsOpen(consumer) }

// Held is how many deliveries wait in this process for their consumer to be resumed.
func (n *Node) Held() int64 { return n.gates.Held() }
