package operations

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/console"
)

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
