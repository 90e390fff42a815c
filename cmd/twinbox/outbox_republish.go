package main

import (
	"cmp"
	"context"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxRepublish is "twinbox outbox republish".
type OutboxRepublish struct {
	Operator `embed:""`
	Change   `embed:""`

	From  *int64   `help:"First position. Positions are a service's own: give --service too." env:"-" placeholder:"N"`
	To    *int64   `help:"Last position." env:"-" placeholder:"N"`
	Since instant  `help:"Events from this time on: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
	Until instant  `help:"Events before this time." env:"-" placeholder:"TIME"`
	ID    []string `help:"Event id; may be repeated." name:"id" env:"-" placeholder:"UUID"`
	Topic string   `help:"Of this topic. Copies of dead letters are left out unless their topic (dlq.*) or --id asks for them." env:"-"`
	Key   string   `help:"Of this key." env:"-"`
}

// Run asks every service to republish what it has of the selection.
func (c *OutboxRepublish) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	if (c.From != nil || c.To != nil) && len(services) > 1 {
		return usage("positions are a service's own: give --service too")
	}
	what := effect{done: "Republished", would: "republish", thing: "event"}
	request := client.Post("/admin/v1/outbox/republish", c.request())
	return inTurn(ctx, to, c.Operator, services, what, !c.Yes,
		func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
			return client.Stream(ctx, s, progress, request)
		})
}

func (c *OutboxRepublish) request() adminapi.RepublishRequest {
	request := adminapi.RepublishRequest{
		By: c.who(), Reason: c.why(), DryRun: !c.Yes, From: c.From, To: c.To, Topic: set(c.Topic), Key: set(c.Key),
		Since: c.Since.given(), Until: c.Until.given(),
	}
	if len(c.ID) > 0 {
		request.EventIds = &c.ID
	}
	return request
}

func (c *OutboxRepublish) check() error {
	switch {
	case c.From == nil && c.To == nil && c.Since.IsZero() && c.Until.IsZero() && len(c.ID) == 0 &&
		c.Topic == "" && c.Key == "":
		return usage("nothing selected: give --from, --to, --since, --until, --id, --topic or --key")
	case c.From != nil && *c.From < 1 || c.To != nil && *c.To < 1:
		return usage("positions begin at 1")
	}
	return cmp.Or(checkWindow(c.Since, c.Until), c.Change.check())
}
