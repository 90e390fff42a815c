// Package services lists the examples. What runs or documents all of them reads this list, so that a new example is one
// line here.
package services

import (
	"example.com/twinbox/examples/hello"
	"example.com/twinbox/examples/ledger"
	"example.com/twinbox/examples/order"
	"example.com/twinbox/examples/payments"
	"example.com/twinbox/internal/service/eventing"
)

// All lists them in the order of every output, and in that in which they are started.
func All() []eventing.Described {
	return []eventing.Described{
		hello.Service.Describe(),
		order.Service.Describe(),
		payments.Service.Describe(),
		ledger.Service.Describe(),
	}
}

// Names are theirs.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}
