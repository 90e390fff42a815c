// Package services lists the services of this project: a new service is one line here.
package services

import (
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service/eventing"
)

// All returns the services in the order of every output and of their start.
func All() []eventing.Described {
	return []eventing.Described{
		customer.Service.Describe(),
		notification.Service.Describe(),
		// make new-service adds lines here.
	}
}

// Names returns the services' names.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}
