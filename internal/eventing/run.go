package eventing

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"example.com/twinbox/internal/service"
)

// Listeners are the addresses a service listens on. API is empty for a service without one.
type Listeners struct{ Admin, API string }

// Run is the life of a service around its node: it opens the admin listener, waits for the database, starts the relay,
// waits until events may be written, opens the API's listener, lets start start what writes and consumes, says that it
// listens, and returns when the group has stopped. The group stops in reverse, so the relay is still there for the last
// events. An error that only another setting can cure, of the service, a server or a topic, has the exit code of a
// wrong configuration.
//
// While it waits, /livez answers, /readyz says what is missing, and nobody can connect to the API.
func (n *Node) Run(
	ctx context.Context, group *service.Group, at Listeners, host service.Host,
	start func(group *service.Group, api net.Listener),
) error {
	group.OnStop("connections", n.Close)
	bound, err := n.open(ctx, group, at, start)
	if err != nil && ctx.Err() == nil {
		group.Go("start", func(context.Context) error { return err })
	}
	if err == nil {
		host.Announce(bound)
	}
	return refused(group.Wait())
}

func (n *Node) open(
	ctx context.Context, group *service.Group, at Listeners, start func(*service.Group, net.Listener),
) (bound service.Listening, err error) {
	if err := n.offerOperations(); err != nil {
		return bound, err
	}
	admin, err := listen(ctx, at.Admin)
	if err != nil {
		return bound, fmt.Errorf("open admin listener: %w", err)
	}
	group.Go("admin", func(ctx context.Context) error { return n.setup.Admin.Serve(ctx, admin) })
	bound.Admin = admin.Addr().String()
	n.dependencies.start(group)
	if err := n.await(ctx, "database", n.checkSchema); err != nil {
		return bound, err
	}
	group.Go("relay", n.relayEvents)
	if err := n.await(ctx, "outbox", n.checkWriters); err != nil {
		return bound, err
	}
	if at.API == "" {
		start(group, nil)
		return bound, nil
	}
	api, err := listen(ctx, at.API)
	if err != nil {
		return bound, fmt.Errorf("open API listener: %w", err)
	}
	bound.API = api.Addr().String()
	start(group, api)
	return bound, nil
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", addr)
}

// Log is the service's logger.
func (n *Node) Log() *slog.Logger { return n.setup.Log }
