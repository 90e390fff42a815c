//go:build !noexamples

package devstack

import (
	"context"
	"errors"
	"path/filepath"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/examples/forwarder"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/natsserver"
)

// programs are the examples that are no services: the forwarder, with a NATS server and a receiver of its own.
func (c *RunCommand) programs() []local.Program {
	if !c.Examples {
		return nil
	}
	return []local.Program{{
		Name: "forwarder", Shows: "Forwarded",
		Listens: []local.ProgramListen{
			{Name: "forwarder's receiver", Flag: "forwarder-addr", Addr: c.ForwarderAddr},
			{Name: "forwarder admin", Flag: "forwarder-admin-addr", Addr: c.ForwarderAdminAddr},
			{Name: "NATS", Flag: "nats-addr", Addr: c.NATSAddr},
		},
		Run: c.forward,
	}}
}

// forward runs the forwarder from the configuration that its program would read.
func (c *RunCommand) forward(ctx context.Context, dir string, at local.Addresses, host service.Host) (err error) {
	server, err := natsserver.Start(ctx, natsserver.Config{
		Addr: c.NATSAddr, Dir: filepath.Join(dir, "nats"), Log: host.Log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	var cfg forwarder.Config
	if err := config.Load([]string{
		"ADMIN_ADDR=" + c.ForwarderAdminAddr, "RECEIVER_ADDR=" + c.ForwarderAddr, "NATS_URL=" + server.URL(),
		"KAFKA_BROKERS=" + at.KafkaBrokers, "FORWARD_INSTANCE=make-run", "SHUTDOWN_TIMEOUT=15s",
	}, &cfg); err != nil {
		return err
	}
	return forwarder.Run(ctx, cfg, host)
}
