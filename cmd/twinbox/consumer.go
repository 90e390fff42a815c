package main

import (
	"context"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// ConsumerCommands are "twinbox consumer ...".
type ConsumerCommands struct {
	List   ConsumerList   `cmd:"" help:"The consumers, which of them are paused, by whom and why."`
	Pause  ConsumerPause  `cmd:"" help:"Pause a consumer: its instances handle no more records, its records wait on the topic."`
	Resume ConsumerResume `cmd:"" help:"Let a paused consumer go on, where it stopped."`
}

// ConsumerList is "twinbox consumer list".
type ConsumerList struct {
	Operator `embed:""`
	Watch    `embed:""`
}

// Run asks every service.
func (c *ConsumerList) Run(ctx context.Context, to streams) error {
	return c.repeat(ctx, to, func() error {
		return survey(ctx, &c.Operator, to, client.Get("/admin/v1/inbox/stats", nil), c.write)
	})
}

func (c *ConsumerList) write(to streams, answers []answerOf[adminapi.InboxStats]) error {
	t := table{
		columns: []string{"CONSUMER", "STATE", "SINCE", "BY", "REASON"}, prose: []string{"REASON"},
		omit: []string{"SINCE", "BY"},
	}
	for _, a := range answers {
		for _, s := range a.value.Items {
			if p := s.Paused; p != nil {
				t.add(s.Consumer, "paused", moment(p.Since), p.By, p.Reason)
				continue
			}
			t.add(s.Consumer, "running", "-", "-", "-")
		}
	}
	return c.show(to, &t)
}

// ConsumerPause is "twinbox consumer pause".
type ConsumerPause struct {
	Operator `embed:""`
	Change   `embed:""`

	Name string `arg:"" help:"The consumer, as \"consumer list\" shows it."`
}

// Run finds the service that has the consumer and asks it.
func (c *ConsumerPause) Run(ctx context.Context, to streams) error {
	what := effect{done: "Paused", would: "pause", thing: "consumer"}
	return changeConsumer(ctx, to, c.Operator, c.Change, c.Name, what, "/admin/v1/consumers/pause")
}

// ConsumerResume is "twinbox consumer resume".
type ConsumerResume struct {
	Operator `embed:""`
	Change   `embed:""`

	Name string `arg:"" help:"The consumer, as \"consumer list\" shows it."`
}

// Run finds the service that has the consumer and asks it.
func (c *ConsumerResume) Run(ctx context.Context, to streams) error {
	what := effect{done: "Resumed", would: "resume", thing: "consumer"}
	return changeConsumer(ctx, to, c.Operator, c.Change, c.Name, what, "/admin/v1/consumers/resume")
}

func changeConsumer(
	ctx context.Context, to streams, o Operator, c Change, name string, what effect, path string,
) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := o.connect()
	if err != nil {
		return err
	}
	request := adminapi.ConsumerRequest{By: c.who(), Reason: c.why(), DryRun: !c.Yes, Consumer: name}
	return whoHasIt(ctx, to, o, services, what, func(s *client.Service) (adminapi.Result, error) {
		return client.Call[adminapi.Result](ctx, s, client.Post(path, request))
	})
}
