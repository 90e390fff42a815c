package main

import (
	"context"
	"time"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxScheduled are "twinbox outbox scheduled ...".
type OutboxScheduled struct {
	List   ScheduledList   `cmd:"" aliases:"ls" help:"Events that are due later, in the order in which they are due."`
	Cancel ScheduledCancel `cmd:"" help:"Cancel a scheduled event: it is never added."`
}

// ScheduledList is "twinbox outbox scheduled list".
type ScheduledList struct {
	Operator `embed:""`
	Watch    `embed:""`

	Topic string `help:"Of this topic." env:"-"`
	Key   string `help:"Of this key." env:"-"`
	Limit *int   `help:"The first of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}

// Run asks every service.
func (c *ScheduledList) Run(ctx context.Context, to streams) error {
	if err := checkLimit(c.Limit, "pick some with --topic or --key"); err != nil {
		return err
	}
	limit := valueOr(c.Limit, defaultLimit)
	return c.repeat(ctx, to, func() error {
		return survey(ctx, &c.Operator, to, client.Get("/admin/v1/outbox/scheduled", adminapi.ListScheduledParams{
			Topic: set(c.Topic), Key: set(c.Key), Limit: &limit,
		}), c.write)
	})
}

func (c *ScheduledList) write(to streams, answers []answerOf[adminapi.ScheduledEvents]) error {
	t := table{
		columns: []string{"SERVICE", "NAME", "DUE", "OVERDUE", "TYPE", "KEY", "SCHEDULED"},
		omit:    []string{"SCHEDULED", "TYPE", "KEY", "OVERDUE"},
	}
	for _, a := range answers {
		if a.value.More {
			to.warn(a.service.Name + " has more; see them with --limit, --topic or --key")
		}
		for _, e := range a.value.Items {
			overdue := "-"
			if e.OverdueSeconds > 0 {
				overdue = time.Duration(e.OverdueSeconds * float64(time.Second)).Round(time.Second).String()
			}
			t.add(a.service.Name, e.Name, moment(e.DueAt), overdue, e.Type, e.Key, moment(e.ScheduledAt))
		}
	}
	if len(t.rows) == 0 {
		return to.say("No scheduled events.")
	}
	return c.show(to, &t)
}

// ScheduledCancel is "twinbox outbox scheduled cancel".
type ScheduledCancel struct {
	Operator `embed:""`
	Change   `embed:""`

	Name string `arg:"" help:"Its name, as \"outbox scheduled list\" shows it."`
}

// Run finds the service that has scheduled the event and asks it.
func (c *ScheduledCancel) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	what := effect{done: "Cancelled", would: "cancel", thing: "scheduled event"}
	return whoHasIt(ctx, to, c.Operator, services, what, func(s *client.Service) (adminapi.Result, error) {
		return client.Call[adminapi.Result](ctx, s, client.Post("/admin/v1/outbox/scheduled/cancel",
			adminapi.CancelScheduledRequest{By: c.who(), Reason: c.why(), DryRun: !c.Yes, Name: c.Name}))
	})
}
