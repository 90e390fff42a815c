package eventing

// FlushLog writes what the log holds back.
func (n *Node) FlushLog() { n.limited.Flush() }
