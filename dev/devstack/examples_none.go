//go:build noexamples

package devstack

import (
	"errors"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/service/eventing"
)

// Validate refuses what was left out: make run compiles the examples, and the NATS server that the forwarder needs, for
// those alone who ask for them. They are a fifth of all that a first start compiles.
func (c *RunCommand) Validate() error {
	if c.Examples {
		return errors.New("this program was compiled without the examples: make run ARGS=--examples")
	}
	return nil
}

func (c *RunCommand) examples() []eventing.Described { return nil }

func (c *RunCommand) programs() []local.Program { return nil }
