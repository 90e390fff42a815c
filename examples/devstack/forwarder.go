package devstack

import (
	"context"
	"log/slog"
	"path/filepath"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/examples/forwarder"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/natsserver"
)

type forwarderFlags struct {
	ForwarderAddr      string `help:"What the forwarder's receiver was sent." default:"127.0.0.1:8120"`
	ForwarderAdminAddr string `help:"Its /livez, /readyz, /metrics." default:"127.0.0.1:8121"`
	NATSAddr           string `help:"NATS server, which remembers for the forwarder." name:"nats-addr" default:"127.0.0.1:4222"`
}

// Forwarder runs the forwarder, with its own NATS server and receiver.
func Forwarder() local.Extension {
	flags := &forwarderFlags{}
	return local.Extension{Flags: flags, Add: func(cfg *local.Config) {
		cfg.Programs = append(cfg.Programs, local.Program{
			Name: "forwarder", Title: "Forwarded", Run: flags.forward,
			Listeners: []local.Listener{
				{Name: "forwarder's receiver", Flag: "forwarder-addr", Addr: flags.ForwarderAddr},
				{Name: "forwarder admin", Flag: "forwarder-admin-addr", Addr: flags.ForwarderAdminAddr},
				{Name: "NATS", Flag: "nats-addr", Addr: flags.NATSAddr},
			},
		})
	}}
}

func (f *forwarderFlags) forward(
	ctx context.Context, at local.Addresses, log *slog.Logger, ready func(shown string),
) error {
	dir := filepath.Join(at.Dir, "forwarder", "nats")
	server, err := natsserver.Start(natsserver.Config{Addr: f.NATSAddr, Dir: dir})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	var cfg forwarder.Config
	if err := config.Load([]string{
		"ADMIN_ADDR=" + f.ForwarderAdminAddr, "RECEIVER_ADDR=" + f.ForwarderAddr, "NATS_URL=" + server.ClientURL(),
		"KAFKA_BROKERS=" + at.KafkaBrokers, "FORWARD_INSTANCE=make-run", "SHUTDOWN_TIMEOUT=15s",
	}, &cfg); err != nil {
		return err
	}
	return forwarder.Run(ctx, cfg, service.Host{Log: log, Ready: func(bound service.Listeners) {
		ready("http://" + local.Reachable(bound.API))
	}})
}
