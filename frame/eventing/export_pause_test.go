package eventing

// Paused says whether this process holds the consumer's deliveries back.
func (n *Node) Paused(consumer string) bool { return !n.gates.Of(consumer).IsOpen() }

// Held is how many deliveries of the consumer wait in this process for it to be resumed.
func (n *Node) Held(consumer string) int64 { return n.gates.Of(consumer).Held() }
