package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxTopics is "twinbox outbox topics".
type OutboxTopics struct {
	Operator `embed:""`
	Watch    `embed:""`
}

// Run asks every service.
func (c *OutboxTopics) Run(ctx context.Context, to streams) error {
	return c.repeat(ctx, to, func() error {
		return survey(ctx, &c.Operator, to, client.Get("/admin/v1/outbox/topics", nil), c.write)
	})
}

func (c *OutboxTopics) write(to streams, answers []answerOf[adminapi.Topics]) error {
	topics := table{
		columns: []string{"SERVICE", "TOPIC", "PARTITIONS", "KEYS SPREAD OVER", "GROUPS BEHIND"},
	}
	for _, a := range answers {
		for _, t := range a.value.Items {
			partitions := "does not exist"
			if t.Partitions != nil {
				partitions = fmt.Sprint(*t.Partitions)
			}
			topics.add(a.service.Name, t.Topic, partitions, spreadOf(t), behindOf(t.Behind))
		}
	}
	return c.show(to, &topics)
}

func spreadOf(t adminapi.Topic) string {
	switch {
	case t.SpreadOver == 0:
		return "not seen yet"
	case t.Partitions != nil && *t.Partitions != t.SpreadOver:
		return fmt.Sprintf("%d: to be confirmed", t.SpreadOver)
	}
	return fmt.Sprint(t.SpreadOver)
}

func behindOf(behind map[string]int64) string {
	var list []string
	for _, group := range slices.Sorted(maps.Keys(behind)) {
		list = append(list, fmt.Sprintf("%s by %d", group, behind[group]))
	}
	return strings.Join(list, ", ")
}

// OutboxConfirm is "twinbox outbox confirm".
type OutboxConfirm struct {
	Operator `embed:""`
	Change   `embed:""`

	Topic      string `help:"The topic that was given more partitions." required:"" env:"-"`
	Partitions int32  `help:"How many it has now." required:"" env:"-"`
	Force      bool   `help:"Also while a consumer group has not read the topic to its end." env:"-"`
}

// Run finds the service that writes to the topic and asks it.
func (c *OutboxConfirm) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	what := effect{done: "Confirmed the partitions of", would: "confirm the partitions of", thing: "topic"}
	return whoHasIt(ctx, to, c.Operator, services, what, func(s *client.Service) (adminapi.Result, error) {
		return client.Call[adminapi.Result](ctx, s,
			client.Post("/admin/v1/outbox/topics/confirm", adminapi.ConfirmPartitionsRequest{
				By: c.who(), Reason: c.why(), DryRun: !c.Yes, Topic: c.Topic, Partitions: c.Partitions,
				Force: set(c.Force),
			}))
	})
}
