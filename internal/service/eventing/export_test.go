package eventing

import "time"

// NoteBrokerBack notes that the broker has just come back from an outage.
func (n *Node) NoteBrokerBack() { n.dependencies.brokerBack.Store(time.Now().Unix()) }
