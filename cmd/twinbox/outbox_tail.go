package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/admin/client"
)

// OutboxTail is "twinbox outbox tail".
type OutboxTail struct {
	Operator `embed:""`

	Limit   int    `help:"How many events of each service, 1 to 1000." short:"n" default:"20" env:"-"`
	Topic   string `help:"Of this topic." env:"-"`
	Key     string `help:"Of this key." env:"-"`
	Type    string `help:"Of this type." env:"-"`
	Payload bool   `help:"Show payloads, which hold personal data." env:"-"`
}

// tailed is an event with the service it is of.
type tailed struct {
	Service string `json:"service"`
	adminapi.OutboxEvent
}

// Run asks every service and puts the events in the order of their time.
func (c *OutboxTail) Run(ctx context.Context, to streams) error {
	services, err := c.connect()
	if err != nil {
		return err
	}
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.OutboxEvents, error) {
		return client.Call[adminapi.OutboxEvents](s, func(api *adminapi.Client) (*http.Response, error) {
			return api.TailOutbox(ctx, &adminapi.TailOutboxParams{
				Topic: set(c.Topic), Key: set(c.Key), Type: set(c.Type), Payload: &c.Payload, Limit: &c.Limit,
			})
		})
	})
	if len(answers) == 0 {
		return err
	}
	events := []tailed{}
	for _, a := range answers {
		for _, e := range a.value.Items {
			events = append(events, tailed{a.service.Name, e})
		}
	}
	slices.SortStableFunc(events, func(a, b tailed) int { return a.OccurredAt.Compare(b.OccurredAt) })
	if c.JSON {
		return both(writeJSON(to.out, map[string]any{"items": events}), err)
	}
	t := table{columns: []string{"SERVICE", "POSITION", "TIME", "TYPE", "KEY", "VERSION", "STATE", "EVENT ID"}}
	if c.Payload {
		t.columns = append(t.columns, "PAYLOAD")
	}
	for _, e := range events {
		row := []any{e.Service, e.Position, moment(e.OccurredAt), e.Type, e.Key, e.Version, e.State, e.EventId}
		if c.Payload {
			row = append(row, cmp.Or(textOf(e.Payload), "(left out: 8 MiB are shown)"))
		}
		t.add(row...)
	}
	return both(t.write(to.out, to.width()), err)
}

// set is a parameter that is sent only where it is given.
func set[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

func textOf(payload *[]byte) string {
	if payload == nil {
		return ""
	}
	return string(*payload)
}
