package main

import (
	"context"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// StatusCommand is "twinbox status".
type StatusCommand struct {
	Operator `embed:""`
	Watch    `embed:""`
}

// Run asks every service why it waits.
func (c *StatusCommand) Run(ctx context.Context, to streams) error {
	return c.repeat(ctx, to, func() error {
		return survey(ctx, &c.Operator, to, client.Get("/admin/v1/cause", nil), c.write)
	})
}

func (c *StatusCommand) write(to streams, answers []answerOf[adminapi.Cause]) error {
	t := table{
		columns: []string{"SERVICE", "SINCE", "WHY", "MORE"}, wraps: "WHY", omit: []string{"SINCE", "MORE"},
	}
	for _, a := range answers {
		t.add(a.service.Name, momentOf(a.value.Since), a.value.Sentence, orNone(a.value.Command))
	}
	return c.show(to, &t)
}
