package main

import (
	"context"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxConfirmRestore is "twinbox outbox confirm-restore".
type OutboxConfirmRestore struct {
	Operator `embed:""`
	Change   `embed:""`
}

// Run asks one service to go on with its restored database.
func (c *OutboxConfirmRestore) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	if len(services) > 1 {
		return usage("a restore is of one service's database: give --service too")
	}
	what := effect{done: "Took back", would: "take back", thing: "event"}
	request := client.Post("/admin/v1/outbox/restore/confirm",
		adminapi.ConfirmRestoreRequest{By: c.who(), Reason: c.why(), DryRun: !c.Yes})
	return inTurn(ctx, to, c.Operator, services, what, !c.Yes,
		func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
			return client.Stream(ctx, s, progress, request)
		})
}
