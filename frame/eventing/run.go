package eventing

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"example.com/twinbox/frame/service"
)

// Listeners are the addresses a service listens on. API is empty for a service without one.
type Listeners struct{ Admin, API string }

// Run is the life of a service around its node: it opens the admin listener, waits for the database, starts the relay,
// waits until events may be written, opens the API's listener, lets start start what writes and consumes, says that it
// listens, and returns when the group has stopped. The group stops in reverse, so the relay is still there for the last
// events. An error that only another setting can cure, of the service, a server or a topic, has the exit code of a
// wrong configuration.
//
// While it waits, /livez answers, /readyz says what is missing, and the API accepts no connection. A task that fails
// meanwhile ends the wait: what is waited for may be its work, as the first lead of a relay is.
func (n *Node) Run(
	ctx context.Context, group *service.Group, at Listeners, host service.Host,
	start func(group *service.Group, api net.Listener),
) error {
	group.OnStop("connections", n.Close)
	starting, started := untilFailed(ctx, group)
	defer started()
	bound, err := n.open(starting, group, at, start)
	if err != nil && starting.Err() == nil {
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
	if n.setup.Operations != nil {
		prefix, operations, err := n.setup.Operations(n)
		if err != nil {
			return bound, fmt.Errorf("offer operations: %w", err)
		}
		n.setup.Admin.Handle(prefix, operations)
	}
	admin, err := listen(ctx, at.Admin)
	if err != nil {
		return bound, fmt.Errorf("open admin listener: %w", err)
	}
	group.Go("admin", func(ctx context.Context) error { return n.setup.Admin.Serve(ctx, admin) })
	bound.Admin = admin.Addr().String()
	n.bound = bound
	if n.traces != nil { // before what makes spans, and so it stops after it // part: observability, begin
		group.Go("traces", n.traces.Run)
	}
	// part: observability, end
	n.dependencies.start(group)
	if err := n.await(ctx, "database", n.checkSchema); err != nil {
		return bound, err
	}
	group.Go("relay", n.relayEvents)
	group.Go("writers", n.writers.await)
	if err := n.await(ctx, "outbox", n.writers.check); err != nil {
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

// untilFailed is ctx as long as no task of the group has failed. Call stop when nothing waits on it any more.
func untilFailed(ctx context.Context, group *service.Group) (_ context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		select {
		case <-group.Failed():
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", addr)
}

// Log is the service's logger. During an outage it leaves out what the circuits of the node tell of.
func (n *Node) Log() *slog.Logger { return n.setup.Log }

// CircuitLog is the logger for a circuit, which tells of an outage itself.
func (n *Node) CircuitLog() *slog.Logger { return n.circuits }

// Admin is the service's admin listener.
func (n *Node) Admin() *service.Admin { return n.setup.Admin }
