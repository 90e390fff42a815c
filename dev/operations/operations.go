// Package operations adds the console, the demonstration and the operators' file to a stack.
package operations

import (
	"context"
	"errors"
	"log/slog"

	"example.com/twinbox/dev/local"
)

type flags struct {
	ConsoleAddr string `help:"Operators' page, loopback only." default:"127.0.0.1:8090"`
}

type commands struct {
	Demo  DemoCommand  `cmd:"" help:"Run a system of its own, break it, and ask whether anything was lost."`
	Serve ServeCommand `cmd:"" hidden:""`
}

// Extension adds the operations to devstack.
func Extension() local.Extension {
	flags := &flags{}
	return local.Extension{
		Flags: flags, Commands: &commands{},
		Add: func(cfg *local.Config) { cfg.Programs = append(cfg.Programs, Console(flags.ConsoleAddr)) },
	}
}

const consoleName = "console"

// Console returns the program that serves the console at addr, host:port on loopback; port 0 takes a free one. Its link
// signs in the first browser that opens it. While it runs, a file in the stack's folder leads the operator's command to
// the services, ready or not.
func Console(addr string) local.Program {
	return local.Program{
		Name: consoleName, Title: "Console",
		Note:      "signs in one browser; those of earlier starts are signed out",
		Listeners: []local.Listener{{Name: "console", Flag: "console-addr", Addr: addr, Loopback: true}},
		Run: func(ctx context.Context, at local.Addresses, log *slog.Logger, ready func(string)) (err error) {
			remove, err := writeOperators(at)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			return runConsole(ctx, addr, at, log, ready)
		},
	}
}
