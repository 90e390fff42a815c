package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxTail is "twinbox outbox tail".
type OutboxTail struct {
	Operator `embed:""`

	Limit   positive `help:"How many events of each service, 1 to 1000. Default: 20." short:"n" env:"-" placeholder:"N"`
	Follow  bool     `help:"Follow new events, until Ctrl-C." short:"f" env:"-"`
	Topic   string   `help:"Of this topic." env:"-"`
	Key     string   `help:"Of this key." env:"-"`
	Type    string   `help:"Of this type." env:"-"`
	Payload bool     `help:"Show payloads, which hold personal data: the newest ones, up to 8 MiB." env:"-"`
}

// tailed is an event with the service it is of.
type tailed struct {
	Service string `json:"service"`
	adminapi.OutboxEvent
}

const (
	tailLimit   = 20
	followEvery = time.Second
)

// Run asks every service and puts the events in the order of their time.
func (c *OutboxTail) Run(ctx context.Context, to *streams) error {
	services, err := c.connect()
	if err != nil {
		return err
	}
	limit := *c.Limit.most(tailLimit)
	asked := limit
	if c.Follow {
		asked = maxLimit // as each later look, so that what is older than the first rows is not taken for new
	}
	pages, err := c.read(ctx, services, asked)
	if len(pages) == 0 {
		return err
	}
	t := c.table()
	err = c.write(to, t, err, merged(pages, limit))
	if !c.Follow {
		return err
	}
	if err != nil {
		to.warn("%v", err)
	}
	return c.follow(ctx, to, services, t, merged(pages, maxLimit))
}

// read is the newest events of each service, up to the limit. One answer goes back so far; but where new ones are
// followed, it asks on until the limit is reached or nothing older is kept.
func (c *OutboxTail) read(
	ctx context.Context, services []*client.Service, limit int,
) ([]answerOf[adminapi.OutboxEvents], error) {
	return ask(ctx, services, func(ctx context.Context, s *client.Service) (all adminapi.OutboxEvents, err error) {
		for {
			next, err := client.Call[adminapi.OutboxEvents](ctx, s,
				client.Get("/admin/v1/outbox/events", adminapi.TailOutboxParams{
					Topic: set(c.Topic), Key: set(c.Key), Type: set(c.Type), Payload: &c.Payload,
					Limit: new(limit - len(all.Items)), Before: all.Rest,
				}))
			all.Items, all.Rest = append(next.Items, all.Items...), next.Rest
			if err != nil || all.Rest == nil || c.Follow {
				return all, err
			}
		}
	})
}

// merged are the newest events of each service, up to the limit, in the order of their time.
func merged(pages []answerOf[adminapi.OutboxEvents], limit int) []tailed {
	events := []tailed{}
	for _, a := range pages {
		items := a.value.Items
		for _, e := range items[max(0, len(items)-limit):] {
			events = append(events, tailed{a.service.Name, e})
		}
	}
	slices.SortStableFunc(events, func(a, b tailed) int { return a.OccurredAt.Compare(b.OccurredAt) })
	return events
}

// follow shows what was not there at the last look. It compares the events and not their positions: a transaction that
// commits late puts its events below ones that were seen.
func (c *OutboxTail) follow(
	ctx context.Context, to *streams, services []*client.Service, t *table, known []tailed,
) error {
	type place struct {
		service  string
		position int64
	}
	seen := map[place]bool{}
	for _, e := range known {
		seen[place{e.Service, e.Position}] = true
	}
	oldest, trouble := time.Now(), ""
	if len(known) > 0 {
		oldest = known[0].OccurredAt
	}
	return to.again(ctx, followEvery, func() error {
		pages, err := c.read(ctx, services, maxLimit)
		var fresh []tailed
		for _, e := range merged(pages, maxLimit) {
			at := place{e.Service, e.Position}
			if !seen[at] && !e.OccurredAt.Before(oldest) {
				fresh = append(fresh, e)
			}
			seen[at] = true
		}
		if len(fresh) >= maxLimit {
			to.warn("events come faster than they are shown; some are left out")
		}
		if len(fresh) > 0 {
			t.rows, t.bare = nil, true
			_ = c.write(to, t, nil, fresh)
		}
		if now := fmt.Sprint(err); now != trouble { // written once, not with every look
			trouble = now
			return err
		}
		return nil
	})
}

func (c *OutboxTail) table() *table {
	t := &table{
		columns: []string{"SERVICE", "POSITION", "TIME", "TYPE", "KEY", "VERSION", "STATE", "EVENT ID"},
		prose:   "PAYLOAD", omit: []string{"TYPE", "TIME", "KEY", "VERSION", "STATE"},
	}
	if c.Payload {
		t.columns = append(t.columns, "PAYLOAD")
	}
	return t
}

func (c *OutboxTail) write(to *streams, t *table, missing error, events []tailed) error {
	for _, e := range events {
		t.add(e.Service, e.Position, moment(e.OccurredAt), e.Type, e.Key, e.Version, e.State, e.EventId,
			cmp.Or(textOf(e.Payload), "(left out: 8 MiB are shown)"))
	}
	return to.reply(missing, map[string]any{"items": events}, t)
}

func textOf(payload *[]byte) string {
	if payload == nil {
		return ""
	}
	return string(*payload)
}
