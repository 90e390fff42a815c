package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxTail is "twinbox outbox tail".
type OutboxTail struct {
	Operator `embed:""`

	Limit   *int   `help:"How many events of each service, 1 to 1000. Default: 20." short:"n" env:"-" placeholder:"N"`
	Follow  bool   `help:"Follow new events, until Ctrl-C." short:"f" env:"-"`
	Topic   string `help:"Of this topic." env:"-"`
	Key     string `help:"Of this key." env:"-"`
	Type    string `help:"Of this type." env:"-"`
	Payload bool   `help:"Show payloads, which hold personal data: the newest ones, up to 8 MiB." env:"-"`
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
func (c *OutboxTail) Run(ctx context.Context, to streams) error {
	if err := checkLimit(c.Limit, "an outbox is never shown as a whole"); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	limit := valueOr(c.Limit, tailLimit)
	asked := limit
	if c.Follow {
		asked = maxLimit // as each later look, so that what is older than the first rows is not taken for new
	}
	events, err := c.read(ctx, services, asked, !c.Follow)
	if events == nil {
		return err
	}
	t := c.table()
	if err := both(c.write(to, t, newest(events, limit)), err); err != nil || !c.Follow {
		return err
	}
	return c.follow(ctx, to, services, t, events)
}

// read is the newest events of each service, up to the limit; nil where none answers. One answer goes back so far; far
// asks on until the limit is reached or nothing older is kept.
func (c *OutboxTail) read(ctx context.Context, services []*client.Service, limit int, far bool) ([]tailed, error) {
	type page = adminapi.OutboxEvents
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (all page, err error) {
		for {
			rest := limit - len(all.Items)
			next, err := client.Call[page](ctx, s,
				client.Get("/admin/v1/outbox/events", adminapi.TailOutboxParams{
					Topic: set(c.Topic), Key: set(c.Key), Type: set(c.Type), Payload: &c.Payload, Limit: &rest,
					Before: all.Rest,
				}))
			all.Items, all.Rest = append(next.Items, all.Items...), next.Rest
			if err != nil || all.Rest == nil || !far {
				return all, err
			}
		}
	})
	if len(answers) == 0 {
		return nil, err
	}
	events := []tailed{}
	for _, a := range answers {
		for _, e := range a.value.Items {
			events = append(events, tailed{a.service.Name, e})
		}
	}
	slices.SortStableFunc(events, func(a, b tailed) int { return a.OccurredAt.Compare(b.OccurredAt) })
	return events, err
}

// newest are the last events of each service, up to limit.
func newest(events []tailed, limit int) []tailed {
	taken := map[string]int{}
	last := []tailed{}
	for _, e := range slices.Backward(events) {
		if taken[e.Service]++; taken[e.Service] <= limit {
			last = append(last, e)
		}
	}
	slices.Reverse(last)
	return last
}

// follow shows what was not there at the last look. It compares the events and not their positions: a transaction that
// commits late puts its events below ones that were seen.
func (c *OutboxTail) follow(
	ctx context.Context, to streams, services []*client.Service, t *table, known []tailed,
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
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		newest, err := c.read(ctx, services, maxLimit, false)
		if ctx.Err() != nil {
			return nil
		}
		if now := textOfError(err); now != trouble { // written once, not with every look
			if trouble = now; err != nil {
				to.warn(now)
			}
		}
		var fresh []tailed
		for _, e := range newest {
			at := place{e.Service, e.Position}
			if !seen[at] && !e.OccurredAt.Before(oldest) {
				fresh = append(fresh, e)
			}
			seen[at] = true
		}
		if len(fresh) == 0 {
			continue
		}
		if len(fresh) >= maxLimit {
			to.warn("events come faster than they are shown; some are left out")
		}
		t.rows, t.bare = nil, true
		if err := c.write(to, t, fresh); err != nil {
			return err
		}
	}
}

func (c *OutboxTail) table() *table {
	t := &table{
		columns: []string{"SERVICE", "POSITION", "TIME", "TYPE", "KEY", "VERSION", "STATE", "EVENT ID"},
		prose:   []string{"PAYLOAD"},
		omit:    []string{"VERSION", "TYPE", "TIME", "STATE", "KEY"}, bare: c.NoHeaders,
	}
	if c.Payload {
		t.columns = append(t.columns, "PAYLOAD")
	}
	return t
}

func (c *OutboxTail) write(to streams, t *table, events []tailed) error {
	if c.json() {
		return writeJSON(to.out, map[string]any{"items": events})
	}
	for _, e := range events {
		row := []any{e.Service, e.Position, moment(e.OccurredAt), e.Type, e.Key, e.Version, e.State, e.EventId}
		if c.Payload {
			row = append(row, cmp.Or(textOf(e.Payload), "(left out: 8 MiB are shown)"))
		}
		t.add(row...)
	}
	width := to.width()
	if c.Output == "wide" {
		width = unknownWide
	}
	t.least = t.natural()
	return t.write(to.out, width)
}

// set is a parameter that is sent only where it is given.
func set[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

func textOfError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func textOf(payload *[]byte) string {
	if payload == nil {
		return ""
	}
	return string(*payload)
}
