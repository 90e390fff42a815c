// Package services lists the examples for everything that runs or documents all of them: a new example is one line
// here.
package services

import (
	"example.com/twinbox/examples/hello"
	"example.com/twinbox/examples/ledger"
	"example.com/twinbox/examples/order"
	"example.com/twinbox/examples/payments"
	"example.com/twinbox/internal/service/eventing"
)

// All lists the examples in the order of every output and of their start.
func All() []eventing.Described {
	return []eventing.Described{
		hello.Service.Describe(),
		order.Service.Describe(),
		payments.Service.Describe(),
		ledger.Service.Describe(),
	}
}
