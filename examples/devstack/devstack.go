// Package devstack adds the examples to the stack of a developer's machine: make run ARGS=--examples.
package devstack

import (
	"example.com/twinbox/dev/local"
	"example.com/twinbox/examples/services"
	"example.com/twinbox/internal/service/eventing"
)

type flags struct {
	Examples bool `help:"Run the examples as well, each with a database of its own."`

	ForwarderAddr      string `help:"What the forwarder's receiver was sent." default:"127.0.0.1:8120"`
	ForwarderAdminAddr string `help:"Its /livez, /readyz, /metrics." default:"127.0.0.1:8121"`
	NATSAddr           string `help:"NATS server, which remembers for the forwarder." name:"nats-addr" default:"127.0.0.1:4222"`
}

// Extension adds the examples to devstack. With --examples all of them run, without it none.
func Extension() local.Extension {
	flags := &flags{}
	return local.Extension{
		Flags: flags,
		Services: func() []eventing.Described {
			if !flags.Examples {
				return nil
			}
			return services.All()
		},
		Programs: func() []local.Program {
			if !flags.Examples {
				return nil
			}
			return []local.Program{newForwarder(flags)}
		},
	}
}
