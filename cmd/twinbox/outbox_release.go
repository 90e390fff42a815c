package main

import (
	"context"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxRelease is "twinbox outbox release".
type OutboxRelease struct {
	Operator `embed:""`
	Change   `embed:""`

	Topic string `help:"Topic of the key." required:"" env:"-"`
	Key   string `help:"The key." required:"" env:"-"`
	Drop  *int64 `help:"First give up the held event at this position, one that the broker refuses for good: it is never published." env:"-" placeholder:"POSITION"`
}

// Run finds the service that has parked the key and asks it.
func (c *OutboxRelease) Run(ctx context.Context, to streams) error {
	if c.Drop != nil && *c.Drop < 1 {
		return usage("--drop is a position, and those begin at 1")
	}
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	what := effect{done: "Released", would: "release", thing: "key"}
	if c.Drop != nil {
		what = effect{done: "Dropped", would: "drop", thing: "event"}
	}
	return whoHasIt(ctx, to, c.Operator, services, what, func(s *client.Service) (adminapi.Result, error) {
		return client.Call[adminapi.Result](ctx, s, client.Post("/admin/v1/outbox/release", adminapi.ReleaseRequest{
			By: c.who(), Reason: c.why(), DryRun: !c.Yes, Topic: c.Topic, Key: c.Key, Drop: c.Drop,
		}))
	})
}
