// Package devstack adds the examples to the stack of a developer's machine: make run ARGS=--examples.
package devstack

import (
	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/examples/services"
)

type flags struct {
	Examples bool `help:"Run the examples as well, each with a database of its own."`

	Programs kong.Plugins `embed:""`
}

// Extension adds the services and the given programs. Without --examples none of them runs.
func Extension(programs ...local.Extension) local.Extension {
	flags := &flags{}
	for _, p := range programs {
		flags.Programs = append(flags.Programs, p.Flags)
	}
	return local.Extension{
		Flags: flags, Services: services.All(),
		Add: func(cfg *local.Config) {
			if !flags.Examples {
				return
			}
			cfg.Extra = append(cfg.Extra, services.All()...)
			for _, p := range programs {
				p.Add(cfg)
			}
		},
	}
}
