package eventing

import "time"

func (n *Node) NoteBrokerBack() { n.brokerBack.Store(time.Now().Unix()) }
