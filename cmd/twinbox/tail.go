package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/twinbox/internal/ops/admin/client"
)

type outboxTail struct {
	Limit   int    `json:"limit" default:"20" help:"How many events of each service, 1 to 1000. Default: 20." short:"n" env:"-" placeholder:"N"`
	Follow  bool   `json:"-" help:"Follow new events, until Ctrl-C." short:"f" env:"-"`
	Topic   string `json:"topic,omitempty" help:"Of this topic." env:"-" names:"outbox topics: topic"`
	Key     string `json:"key,omitempty" help:"Of this key." env:"-"`
	Type    string `json:"type,omitempty" help:"Of this type, such as user-registered." env:"-"`
	Payload bool   `json:"payload,omitempty" help:"Show payloads, which hold personal data: the newest ones, up to 8 MiB." env:"-"`
}

const (
	followEvery = time.Second
	maxLimit    = 1000
)

func (c *outboxTail) Run(ctx context.Context, to *streams, services []*client.Service) error {
	q, asked := questions["outbox tail"], values(c)
	if c.Follow {
		q.all, asked["limit"] = false, maxLimit
		return c.follow(ctx, to, services, q, asked)
	}
	return q.show(ctx, to, services, asked)
}

// follow compares events, not positions: a late commit puts its events below ones that were seen. Each look reaches
// equally far back, so that no older event looks new.
func (c *outboxTail) follow(
	ctx context.Context, to *streams, services []*client.Service, q question, asked item,
) error {
	seen := map[string]map[string]bool{} // positions in the last answer of each service
	trouble := ""
	return to.again(ctx, followEvery, func() error {
		found, unknown, _ := q.ask(ctx, services, asked)
		for _, a := range found {
			before, now := seen[a.Service], map[string]bool{}
			page, _ := a.Value["items"].([]any)
			page = slices.DeleteFunc(page, func(event any) bool {
				position := item(event.(map[string]any)).text("position")
				now[position] = true
				return before[position]
			})
			switch {
			case before == nil:
				page = page[max(0, len(page)-c.Limit):]
			case len(page) >= maxLimit:
				to.warn("events come faster than they are shown; some are left out")
			}
			a.Value["items"], seen[a.Service] = page, now
			delete(a.Value, "next") // older events are not asked for
		}
		if len(q.views[0].table(found).rows) > 0 {
			_ = q.write(to, found, nil, asked)
			to.NoHeaders = true
		}
		if now := fmt.Sprint(unknown.err()); now != trouble { // written once
			trouble = now
			return unknown.err()
		}
		return nil
	})
}
