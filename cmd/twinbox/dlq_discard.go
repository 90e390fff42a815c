package main

import (
	"context"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// DLQDiscard is "twinbox dlq discard".
type DLQDiscard struct {
	Operator     `embed:""`
	Change       `embed:""`
	LetterFilter `embed:""`

	IDs []string `arg:"" optional:"" name:"id" help:"Dead letters, such as customer/17."`
}

// Run discards in one service after the other. There is no --all: events are given up by name.
func (c *DLQDiscard) Run(ctx context.Context, to streams) error {
	services, picked, err := c.choose(c.Operator, c.Change, c.IDs, false)
	if err != nil {
		return err
	}
	what := effect{done: "Discarded", would: "discard", thing: "dead letter"}
	return inTurn(ctx, to, c.Operator, services, what, !c.Yes,
		func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
			return client.Stream(ctx, s, progress, client.Post("/admin/v1/dead-letters/discard", adminapi.DiscardRequest{
				By: c.who(), Reason: c.why(), DryRun: !c.Yes, Filter: c.body("waiting", picked.ids[s.Name]),
			}))
		})
}
