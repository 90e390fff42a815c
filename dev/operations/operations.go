// Package operations adds the console, the demonstration and the operators' file to a stack.
package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/console"
)

type flags struct {
	ConsoleAddr string `help:"Operators' page, loopback only." default:"127.0.0.1:8090"`
}

func Extension() local.Extension {
	flags := &flags{}
	return local.Extension{
		Flags: flags, Add: func(cfg *local.Config) { cfg.Programs = append(cfg.Programs, Console(flags.ConsoleAddr)) },
		Commands: &commands{},
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
			operators, err := writeOperators(at)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(operators)) }()
			return runConsole(ctx, addr, at, log, ready)
		},
	}
}

func runConsole(ctx context.Context, addr string, at local.Addresses, log *slog.Logger, ready func(string)) error {
	cfg := console.Config{
		Log: log, Links: []console.Link{{Title: "Mailbox", URL: "http://" + at.Mailbox}}, Dir: at.Dir,
	}
	for _, name := range at.Names {
		listen := at.Services[name]
		s, err := client.New(name, local.Reachable(listen.Admin), at.AdminToken.Reveal())
		if err != nil {
			return err
		}
		cfg.Services = append(cfg.Services, s)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve console: %w", err)
	}
	page := console.New(cfg)
	ready("http://" + listener.Addr().String() + page.SignIn())
	return page.Run(ctx, listener)
}
