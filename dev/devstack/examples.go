//go:build !noexamples

package devstack

import (
	"example.com/twinbox/examples/services"
	"example.com/twinbox/internal/service/eventing"
)

// examples are those that are asked for: all or none.
func (c *RunCommand) examples() []eventing.Described {
	if !c.Examples {
		return nil
	}
	return services.All()
}
