// Package services lists the services of this project. What runs, operates or documents all of them reads this list, so
// that a new service is one line here.
package services

import (
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service/eventing"
)

// All lists them in the order of every output, and in that in which they are started.
func All() []eventing.Described {
	return []eventing.Described{
		customer.Service.Describe(),
		notification.Service.Describe(),
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
