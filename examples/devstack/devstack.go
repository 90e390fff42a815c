// Package devstack adds the examples to the stack of a developer's machine: make run ARGS=--examples.
package devstack

import (
	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/examples/services"
	"example.com/twinbox/internal/service/eventing"
)

type flags struct {
	Examples bool `help:"Run the examples as well, each with a database of its own."`

	Programs kong.Plugins `embed:""`
}

// Program is an example that is not a service.
type Program struct {
	Flags any
	New   func() local.Program // from the parsed flags
}

// Extension adds the examples to devstack. With --examples all of them run, without it none.
func Extension(programs ...Program) local.Extension {
	flags := &flags{}
	for _, p := range programs {
		flags.Programs = append(flags.Programs, p.Flags)
	}
	return local.Extension{
		Flags: flags,
		Services: func() []eventing.Described {
			if !flags.Examples {
				return nil
			}
			return services.All()
		},
		Programs: func() (list []local.Program) {
			for _, p := range programs {
				if flags.Examples {
					list = append(list, p.New())
				}
			}
			return list
		},
	}
}
