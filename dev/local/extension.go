package local

import "example.com/twinbox/internal/service/eventing"

// Extension adds flags, commands, services and programs to devstack. Every field may be unset.
type Extension struct {
	// Flags points to a struct whose fields are flags of devstack run, with kong's tags.
	Flags any
	// Commands points to a struct whose fields are commands of devstack, with kong's tags.
	Commands any
	// Services and Programs return those to run. They are called after the flags were read.
	Services func() []eventing.Described
	Programs func() []Program
}
