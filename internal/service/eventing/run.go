package eventing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/migrations"
)

// Run runs the service until the group stops. An error that only another setting can cure has the exit code of a wrong
// configuration. While it waits for a server, /readyz names it, and the API accepts no connection.
func (n *Node) Run(group *service.Group, at service.Listeners, host service.Host) error {
	group.OnStop("connections", n.Close)
	err := n.start(group.Context(), group, at)
	switch {
	case err == nil:
		host.Announce(n.bound)
	case group.Context().Err() == nil:
		group.Go("start", func(context.Context) error { return err })
	}
	err = group.Wait()
	if isRefusal(err) {
		return service.Refuse(err)
	}
	return err
}

func (n *Node) start(ctx context.Context, group *service.Group, at service.Listeners) error {
	var listen net.ListenConfig
	admin, err := listen.Listen(ctx, "tcp", at.Admin)
	if err != nil {
		return fmt.Errorf("open admin listener: %w", err)
	}
	group.Go("admin", func(ctx context.Context) error { return n.Admin.Serve(ctx, admin) })
	n.bound.Admin = admin.Addr().String()
	group.Go("database circuit", n.database.Run)
	group.Go("broker circuit", n.broker.Run)
	if err := n.await(ctx, "database", n.checkSchema); err != nil {
		return err
	}
	group.Go("settings of topics", func(ctx context.Context) error { // the relay runs before there is a broker
		err := n.await(ctx, "settings of topics", n.checkTopics)
		if err == nil {
			<-ctx.Done()
		}
		return err
	})
	group.Go("relay", n.relay.Run)
	var api net.Listener
	if n.serveAPI != nil {
		if api, err = listen.Listen(ctx, "tcp", at.API); err != nil {
			return fmt.Errorf("open API listener: %w", err)
		}
		n.bound.API = api.Addr().String()
	}
	for _, t := range n.tasks {
		group.Go(t.name, func(turn context.Context) error { return t.runUntil(ctx, turn) })
	}
	n.startConsumers(group)
	if n.serveAPI != nil {
		group.Go("http", func(ctx context.Context) error { return n.serveAPI(ctx, api) })
	}
	return nil
}

// checkSchema accepts a newer database that fits: a rolling upgrade has one.
func (n *Node) checkSchema(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	newer, err := migrations.Check(ctx, n.Pool, n.setup.Migrations...)
	for _, set := range newer {
		n.Log.InfoContext(ctx, "the database is newer than this build", "set", set.Set,
			"database", set.Database, "build", set.Binary)
	}
	return err
}

func (n *Node) await(ctx context.Context, what string, check func(context.Context) error) error {
	var logged time.Time
	for pauses := (failure.Backoff{Min: 100 * time.Millisecond, Max: time.Second}); ; {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if isFatal(err) {
			return fmt.Errorf("check %s: %w", what, err)
		}
		n.broker.Report(err) // the pool reports to the database
		if ctx.Err() == nil && time.Since(logged) > time.Minute {
			logged = time.Now()
			n.Log.WarnContext(ctx, "waiting", "for", what, "error", err)
		}
		if err := failure.Sleep(ctx, pauses.Next()); err != nil {
			return fmt.Errorf("check %s: %w", what, err)
		}
	}
}

func isFatal(err error) bool {
	_, ofSchema := errors.AsType[*migrations.SchemaError](err)
	return ofSchema || isRefusal(err)
}

// With these settings events would be lost or repeated.
func isRefusal(err error) bool {
	_, ofOutbox := errors.AsType[*relay.CheckError](err)
	_, ofInbox := errors.AsType[*retention.Violation](err)
	return ofOutbox || ofInbox
}
