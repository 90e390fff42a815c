package eventing

func (n *Node) Held() (held int64) {
	for _, c := range n.consumers {
		held += c.held.Load()
	}
	return held
}
