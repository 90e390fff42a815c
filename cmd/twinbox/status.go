package main

import (
	"context"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/console"
	"example.com/twinbox/internal/verify"
)

type statusCommand struct{ Listing }

// Run adds the findings of the folder's last verification, which no service knows.
func (c *statusCommand) Run(ctx context.Context, to *streams, services []*client.Service, at *Connection) error {
	q := questions["status"]
	q.add = func(service string, answer item) {
		if at.isGiven() { // the folder's report may be of another system
			return
		}
		report, _ := verify.ReadReport(at.Dir) // without one there is no verdict
		if verdict := report[service]; verdict != nil && !verdict.Clean() {
			causes, _ := answer["causes"].([]any)
			answer["causes"] = append([]any{map[string]any(values(console.CauseOf(verdict)))}, causes...)
		}
	}
	return c.show(ctx, to, services, q, item{})
}
