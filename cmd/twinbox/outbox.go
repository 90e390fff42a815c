package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/twinbox/internal/ops/admin/client"
)

// OutboxCommands are "twinbox outbox ...".
type OutboxCommands struct {
	Status    Listing         `cmd:"" help:"How far each service's events are published, and which keys are parked."`
	Tail      OutboxTail      `cmd:"" help:"The newest events and their states."`
	Republish OutboxRepublish `cmd:"" post:"/admin/v1/outbox/republish" done:"Republished" would:"republish" thing:"event" help:"Send published events again, with the same ids; consumers skip what they have."`
	Scheduled OutboxScheduled `cmd:"" help:"Events that are due later: list them, take one back."`
	Release   OutboxRelease   `cmd:"" post:"/admin/v1/outbox/release" done:"Released" would:"release" thing:"key" help:"Let the relay try a parked key's events again."`
	Pause     Change          `cmd:"" one:"" post:"/admin/v1/outbox/pause" done:"Paused" would:"pause" thing:"relay" help:"Pause a service's relay: its events wait in the outbox."`
	Resume    Change          `cmd:"" one:"" post:"/admin/v1/outbox/resume" done:"Resumed" would:"resume" thing:"relay" help:"Let a paused relay publish again, where it stopped."`
	Confirm   OutboxConfirm   `cmd:"" one:"" post:"/admin/v1/outbox/confirm" done:"Confirmed" would:"confirm" thing:"refusal" help:"Let a relay publish that refuses, because its database or its topics went back."`
	Lost      OutboxLost      `cmd:"" help:"The events that a database lost when it went back, and that its topics hold."`
	Topics    Listing         `cmd:"" help:"How many partitions each topic has, and which consumer groups are behind."`
}

// OutboxRepublish is "twinbox outbox republish".
type OutboxRepublish struct {
	Change
	Window

	From  *int64   `json:"from,omitempty" help:"First position. Positions are a service's own: give --service too." env:"-" placeholder:"N"`
	To    *int64   `json:"to,omitempty" help:"Last position." env:"-" placeholder:"N"`
	ID    []string `json:"event_ids,omitempty" help:"Event id; may be repeated." name:"id" env:"-" placeholder:"UUID"`
	Topic string   `json:"topic,omitempty" help:"Of this topic. Copies of dead letters are left out unless their topic (dlq.*) or --id asks for them." env:"-" names:"outbox topics: topic"`
	Key   string   `json:"key,omitempty" help:"Of this key." env:"-"`
}

// AfterApply requires a selection of events.
func (c *OutboxRepublish) AfterApply() error {
	if c.From == nil && c.To == nil && c.Window == (Window{}) && len(c.ID) == 0 && c.Topic == "" && c.Key == "" {
		return usage("nothing selected: give --from, --to, --since, --until, --id, --topic or --key")
	}
	return nil
}

// Run asks every service to republish its part of the selection.
func (c *OutboxRepublish) Run(ctx context.Context, to *streams, services []*client.Service, what effect) error {
	if (c.From != nil || c.To != nil) && len(services) > 1 {
		return usage("positions are a service's own: give --service too")
	}
	return c.inTurn(ctx, to, services, what, func(*client.Service) any { return c })
}

// OutboxRelease is "twinbox outbox release".
type OutboxRelease struct {
	Change

	Topic string `json:"topic" help:"Topic of the key." required:"" env:"-" names:"outbox status: topic"`
	Key   string `json:"key" help:"The key." required:"" env:"-" names:"outbox status: key"`
	Drop  *int64 `json:"drop,omitempty" help:"First give up the held event at this position, one that the broker refuses for good: it is never published." env:"-" placeholder:"POSITION"`
}

func (c *OutboxRelease) Run(ctx context.Context, to *streams, services []*client.Service, what effect) error {
	if c.Drop != nil {
		what.done, what.would, what.thing = "Dropped", "drop", "event"
	}
	return whoHasIt(ctx, to, services, what, c)
}

// OutboxConfirm is "twinbox outbox confirm".
type OutboxConfirm struct {
	Change

	Code string `arg:"" json:"code" help:"Its code, as \"outbox status\" shows it." names:"outbox status: refused.code"`
}

// OutboxLost is "twinbox outbox lost".
type OutboxLost struct {
	Listing `json:"-"`

	Topic   string `json:"topic,omitempty" help:"Of this topic." env:"-" names:"outbox topics: topic"`
	Key     string `json:"key,omitempty" help:"Of this key." env:"-"`
	Payload bool   `json:"payload,omitempty" help:"Show headers and payloads, which hold personal data." env:"-"`
}

// OutboxScheduled are "twinbox outbox scheduled ...".
type OutboxScheduled struct {
	List   ScheduledList   `cmd:"" aliases:"ls" help:"Events that are due later, in the order in which they are due."`
	Cancel ScheduledCancel `cmd:"" one:"" post:"/admin/v1/outbox/scheduled/cancel" done:"Cancelled" would:"cancel" thing:"scheduled event" help:"Cancel a scheduled event: it is never added."`
}

// ScheduledList is "twinbox outbox scheduled list".
type ScheduledList struct {
	Listing `json:"-"`

	Topic string `json:"topic,omitempty" help:"Of this topic." env:"-" names:"outbox topics: topic"`
	Key   string `json:"key,omitempty" help:"Of this key." env:"-"`
	Limit *int   `json:"limit" default:"100" help:"The first of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}

// ScheduledCancel is "twinbox outbox scheduled cancel".
type ScheduledCancel struct {
	Change

	Name string `arg:"" json:"name" help:"Its name, as \"outbox scheduled list\" shows it." names:"outbox scheduled list: name"`
}

// OutboxTail is "twinbox outbox tail".
type OutboxTail struct {
	Limit   int    `json:"limit" default:"20" help:"How many events of each service, 1 to 1000. Default: 20." short:"n" env:"-" placeholder:"N"`
	Follow  bool   `json:"-" help:"Follow new events, until Ctrl-C." short:"f" env:"-"`
	Topic   string `json:"topic,omitempty" help:"Of this topic." env:"-" names:"outbox topics: topic"`
	Key     string `json:"key,omitempty" help:"Of this key." env:"-"`
	Type    string `json:"type,omitempty" help:"Of this type." env:"-"`
	Payload bool   `json:"payload,omitempty" help:"Show payloads, which hold personal data: the newest ones, up to 8 MiB." env:"-"`
}

const followEvery = time.Second

// Run asks every service and sorts the events by time.
func (c *OutboxTail) Run(ctx context.Context, to *streams, services []*client.Service) error {
	l, asked := listings["outbox tail"], values(c)
	if c.Follow {
		l.all, asked["limit"] = false, maxLimit
		return c.follow(ctx, to, services, l, asked)
	}
	return l.show(ctx, to, services, asked)
}

// follow compares events, not positions: a transaction that commits late puts its events below ones that were seen.
// Each look reaches equally far back, so that an event older than the first rows does not look new.
func (c *OutboxTail) follow(
	ctx context.Context, to *streams, services []*client.Service, l listing, asked item,
) error {
	seen := map[string]map[string]bool{} // positions of each service that has answered, as of its last answer
	trouble := ""
	return to.again(ctx, followEvery, func() error {
		found, unknown, _ := l.ask(ctx, services, asked)
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
		}
		if len(l.views[0].rows(found)) > 0 {
			_ = l.write(to, found, nil, asked)
			to.NoHeaders = true
		}
		if now := fmt.Sprint(unknown.err()); now != trouble { // written once, not with every look
			trouble = now
			return unknown.err()
		}
		return nil
	})
}
