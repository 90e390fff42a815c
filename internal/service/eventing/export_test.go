package eventing

import "time"

func (n *Node) NoteBrokerBack() { n.dependencies.brokerBack.Store(time.Now().Unix()) }
