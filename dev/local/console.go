package local

import (
	"context"
	"fmt"
	"net"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/console"
)

// runConsole serves the operators' page in the group. It is the first to stop: it looks at all the others.
func (h *stack) runConsole(ctx context.Context) error {
	log, err := h.logs.logger(h.folder, "console")
	if err != nil {
		return err
	}
	cfg := console.Config{
		Log: log, Links: []console.Link{{Title: "Mailbox", URL: "http://" + h.at.Mailbox}}, APIs: map[string]string{},
	}
	for _, described := range h.cfg.services() {
		listen := h.at.Services[described.Name]
		s, err := client.New(described.Name, reachable(listen.Admin), h.at.AdminToken.Reveal())
		if err != nil {
			return err
		}
		cfg.Services = append(cfg.Services, s)
		if listen.API != "" {
			cfg.APIs[described.Name] = "http://" + reachable(listen.API)
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.cfg.Console)
	if err != nil {
		return fmt.Errorf("serve console: %w", err)
	}
	page := console.New(cfg)
	h.at.Console = "http://" + listener.Addr().String() + page.SignIn()
	h.run("console", func(ctx context.Context) error { return page.Run(ctx, listener) })
	return nil
}
