package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// OutboxCommands are "twinbox outbox ...".
type OutboxCommands struct {
	Status    OutboxStatus    `cmd:"" help:"How far each service's events are published, and which keys are parked."`
	Tail      OutboxTail      `cmd:"" help:"The newest events and what became of them."`
	Republish OutboxRepublish `cmd:"" done:"Republished" would:"republish" thing:"event" help:"Send published events again, with the same ids; consumers skip what they have."`
	Scheduled OutboxScheduled `cmd:"" help:"Events that are due later: list them, take one back."`
	Release   OutboxRelease   `cmd:"" done:"Released" would:"release" thing:"key" help:"Let the relay try a parked key's events again."`
	Pause     OutboxPause     `cmd:"" post:"/admin/v1/outbox/pause" done:"Paused" would:"pause" thing:"relay" help:"Pause a service's relay: its events wait in the outbox."`
	Resume    OutboxPause     `cmd:"" post:"/admin/v1/outbox/resume" done:"Resumed" would:"resume" thing:"relay" help:"Let a paused relay publish again, where it stopped."`
	Confirm   OutboxConfirm   `cmd:"" post:"/admin/v1/outbox/confirm" done:"Confirmed" would:"confirm" thing:"refusal" help:"Let a relay publish that refuses, because its database or its topics went back."`
	Lost      OutboxLost      `cmd:"" help:"The events that a database lost when it went back, and that its topics hold."`
	Topics    OutboxTopics    `cmd:"" help:"How many partitions each topic has, and which consumer groups are behind."`
}

// OutboxStatus is "twinbox outbox status".
type OutboxStatus struct{ Survey }

// Run asks every service.
func (c *OutboxStatus) Run(ctx context.Context, to *streams) error {
	status := table{
		columns: []string{"SERVICE", "RELAY", "EPOCH", "HEAD", "WAITING", "OLDEST", "PARKED KEYS", "HELD"},
		omit:    []string{"EPOCH", "HEAD"},
	}
	paused := table{
		columns: []string{"SERVICE", "PAUSED", "BY", "REASON"}, prose: "REASON", omit: []string{"PAUSED", "BY"},
	}
	refused := table{columns: []string{"SERVICE", "REFUSED", "CONFIRMED", "WHY"}, prose: "WHY"}
	losses := table{columns: []string{"SERVICE", "DATABASE WENT BACK", "EVENTS LOST", "BROKER WENT BACK", "HEALING"}}
	scheduled := table{columns: []string{"SERVICE", "SCHEDULED", "OVERDUE"}}
	parked := table{
		columns: []string{"SERVICE", "TOPIC", "KEY", "POSITION", "HELD", "PARKED", "NEXT TRY", "REASON"},
		prose:   "REASON", omit: []string{"PARKED", "NEXT TRY", "HELD"},
	}
	question := client.Get("/admin/v1/outbox/status", nil)
	return survey(ctx, to, &c.Survey, question, func(service string, s adminapi.OutboxStatus) {
		status.add(service, relayOf(s), s.Epoch, s.Head, waitingOf(s), moment(value(s.OldestWaiting)), len(s.Parked),
			s.HeldEvents)
		if p := s.Paused; p != nil {
			paused.add(service, moment(p.Since), p.By, p.Reason)
		}
		if r := s.Refused; r != nil {
			refused.add(service, r.Code, yesOrNo(r.Confirmed), r.Text)
		}
		if s.DatabaseBackAt != nil || s.BrokerBackAt != nil || s.Healing > 0 {
			losses.add(service, moment(value(s.DatabaseBackAt)), s.Lost, moment(value(s.BrokerBackAt)), s.Healing)
		}
		if s.Scheduled > 0 {
			scheduled.add(service, s.Scheduled, seconds(s.OverdueSeconds))
		}
		for _, p := range s.Parked {
			parked.add(service, p.Topic, p.Key, p.Position, p.Held, moment(p.ParkedAt),
				moment(p.RetryAt), p.Reason)
		}
	}, &status, &paused, &refused, &losses, &scheduled, &parked)
}

func relayOf(s adminapi.OutboxStatus) string {
	switch {
	case s.Refused != nil: // between two looks it does not lead
		return "refuses"
	case !s.Leading:
		return "no leader"
	case s.Paused != nil:
		return "paused"
	}
	return "leading"
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func waitingOf(s adminapi.OutboxStatus) string {
	if s.WaitingMore {
		return fmt.Sprintf("%d or more", s.Waiting)
	}
	return fmt.Sprint(s.Waiting)
}

// OutboxRepublish is "twinbox outbox republish".
type OutboxRepublish struct {
	Change
	Window

	From  positive `json:"from,omitempty" help:"First position. Positions are a service's own: give --service too." env:"-" placeholder:"N"`
	To    positive `json:"to,omitempty" help:"Last position." env:"-" placeholder:"N"`
	ID    []string `json:"event_ids,omitempty" help:"Event id; may be repeated." name:"id" env:"-" placeholder:"UUID"`
	Topic string   `json:"topic,omitempty" help:"Of this topic. Copies of dead letters are left out unless their topic (dlq.*) or --id asks for them." env:"-"`
	Key   string   `json:"key,omitempty" help:"Of this key." env:"-"`
}

// AfterApply wants to be told of which events.
func (c *OutboxRepublish) AfterApply() error {
	if c.From == 0 && c.To == 0 && c.Window == (Window{}) && len(c.ID) == 0 && c.Topic == "" && c.Key == "" {
		return usage("nothing selected: give --from, --to, --since, --until, --id, --topic or --key")
	}
	return nil
}

// Run asks every service to republish what it has of the selection.
func (c *OutboxRepublish) Run(ctx context.Context, to *streams, services []*client.Service, what effect) error {
	if (c.From != 0 || c.To != 0) && len(services) > 1 {
		return usage("positions are a service's own: give --service too")
	}
	return c.inTurn(ctx, to, services, what, stream(ctx, client.Post("/admin/v1/outbox/republish", c)))
}

// OutboxRelease is "twinbox outbox release".
type OutboxRelease struct {
	Change

	Topic string   `json:"topic" help:"Topic of the key." required:"" env:"-"`
	Key   string   `json:"key" help:"The key." required:"" env:"-"`
	Drop  positive `json:"drop,omitempty" help:"First give up the held event at this position, one that the broker refuses for good: it is never published." env:"-" placeholder:"POSITION"`
}

// Run finds the service that has parked the key and asks it.
func (c *OutboxRelease) Run(ctx context.Context, to *streams, services []*client.Service, what effect) error {
	if c.Drop != 0 {
		what = effect{done: "Dropped", would: "drop", thing: "event"}
	}
	return whoHasIt(ctx, to, services, what, client.Post("/admin/v1/outbox/release", c))
}

// OutboxPause is "twinbox outbox pause" and "... resume".
type OutboxPause struct{ Change }

// Run asks the one service.
func (c *OutboxPause) Run(
	ctx context.Context, command *kong.Context, to *streams, services []*client.Service, what effect,
) error {
	if len(services) > 1 {
		return usage("a pause is of one service's relay: give --service too")
	}
	return c.Change.Run(ctx, command, to, services, what)
}

// OutboxConfirm is "twinbox outbox confirm".
type OutboxConfirm struct {
	Change

	Code string `arg:"" json:"code" help:"Its code, as \"outbox status\" shows it: ${enum}." enum:"events_unknown,versions_missing,log_unplaceable,records_expired"`
}

// OutboxLost is "twinbox outbox lost".
type OutboxLost struct {
	Operator `json:"-"`

	Topic   string   `json:"topic,omitempty" help:"Of this topic." env:"-"`
	Key     string   `json:"key,omitempty" help:"Of this key." env:"-"`
	Payload bool     `json:"payload,omitempty" help:"Show headers and payloads, which hold personal data." env:"-"`
	After   string   `json:"after,omitempty" kong:"-"`
	Limit   positive `json:"limit" kong:"-"`
}

// lostEvent is a lost event with its service.
type lostEvent struct {
	Service string `json:"service"`
	adminapi.LostEvent
}

// Run asks every service for all of them.
func (c *OutboxLost) Run(ctx context.Context, to *streams, services []*client.Service) error {
	answers, err := ask(services, func(s *client.Service) ([]adminapi.LostEvent, error) { return c.read(ctx, s) })
	if len(answers) == 0 {
		return err
	}
	t := table{
		columns: []string{"SERVICE", "RECORD", "APPENDED", "TYPE", "KEY", "VERSION", "EVENT ID"}, prose: "PAYLOAD",
		omit: []string{"APPENDED", "TYPE", "VERSION"}, none: "No lost events.\n",
	}
	if c.Payload {
		t.columns = append(t.columns, "HEADERS", "PAYLOAD")
	}
	events := []lostEvent{}
	for _, a := range answers {
		for _, e := range a.Value {
			events = append(events, lostEvent{a.Service, e})
			t.add(a.Service, fmt.Sprintf("%s[%d]@%d", e.Topic, e.Partition, e.Offset), moment(e.AppendedAt), e.Type, e.Key,
				e.Version, e.EventID, string(e.Headers), string(e.Payload))
		}
	}
	return to.reply(err, map[string]any{"items": events}, &t)
}

// read asks a service for page after page.
func (c *OutboxLost) read(ctx context.Context, s *client.Service) (events []adminapi.LostEvent, err error) {
	asked := *c
	asked.Limit = maxLimit
	for {
		page, err := client.Call[adminapi.LostEvents](ctx, s, client.Get("/admin/v1/outbox/lost", asked))
		events = append(events, page.Items...)
		if asked.After = page.Next; err != nil || asked.After == "" {
			return events, err
		}
	}
}

// OutboxTopics is "twinbox outbox topics".
type OutboxTopics struct{ Survey }

// Run asks every service.
func (c *OutboxTopics) Run(ctx context.Context, to *streams) error {
	topics := table{columns: []string{"SERVICE", "TOPIC", "PARTITIONS", "GROUPS BEHIND"}}
	question := client.Get("/admin/v1/outbox/topics", nil)
	return survey(ctx, to, &c.Survey, question, func(service string, said adminapi.Topics) {
		for _, t := range said.Items {
			var behind []string
			for _, group := range slices.Sorted(maps.Keys(t.Behind)) {
				behind = append(behind, fmt.Sprintf("%s by %d", group, t.Behind[group]))
			}
			topics.add(service, t.Topic, t.Partitions, strings.Join(behind, ", "))
		}
	}, &topics)
}

// OutboxScheduled are "twinbox outbox scheduled ...".
type OutboxScheduled struct {
	List   ScheduledList   `cmd:"" aliases:"ls" help:"Events that are due later, in the order in which they are due."`
	Cancel ScheduledCancel `cmd:"" post:"/admin/v1/outbox/scheduled/cancel" done:"Cancelled" would:"cancel" thing:"scheduled event" help:"Cancel a scheduled event: it is never added."`
}

// ScheduledList is "twinbox outbox scheduled list".
type ScheduledList struct {
	Survey `json:"-"`

	Topic string   `json:"topic,omitempty" help:"Of this topic." env:"-"`
	Key   string   `json:"key,omitempty" help:"Of this key." env:"-"`
	Limit positive `json:"limit" default:"100" help:"The first of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}

// Run asks every service.
func (c *ScheduledList) Run(ctx context.Context, to *streams) error {
	t := table{
		columns: []string{"SERVICE", "NAME", "DUE", "OVERDUE", "TYPE", "KEY", "SCHEDULED"},
		omit:    []string{"SCHEDULED", "TYPE", "KEY", "OVERDUE"}, none: "No scheduled events.\n",
	}
	question := client.Get("/admin/v1/outbox/scheduled", c)
	return survey(ctx, to, &c.Survey, question, func(service string, said adminapi.ScheduledEvents) {
		if said.More {
			to.warn("%s has more; see them with --limit, --topic or --key", service)
		}
		for _, e := range said.Items {
			t.add(service, e.Name, moment(e.DueAt), seconds(max(0, e.OverdueSeconds)), e.Type, e.Key, moment(e.ScheduledAt))
		}
	}, &t)
}

// ScheduledCancel is "twinbox outbox scheduled cancel".
type ScheduledCancel struct {
	Change

	Name string `arg:"" json:"name" help:"Its name, as \"outbox scheduled list\" shows it."`
}

// OutboxTail is "twinbox outbox tail".
type OutboxTail struct {
	Operator `json:"-"`

	Limit   positive `json:"limit" default:"20" help:"How many events of each service, 1 to 1000. Default: 20." short:"n" env:"-" placeholder:"N"`
	Follow  bool     `json:"-" help:"Follow new events, until Ctrl-C." short:"f" env:"-"`
	Topic   string   `json:"topic,omitempty" help:"Of this topic." env:"-"`
	Key     string   `json:"key,omitempty" help:"Of this key." env:"-"`
	Type    string   `json:"type,omitempty" help:"Of this type." env:"-"`
	Before  int64    `json:"before,omitempty" kong:"-"`
	Payload bool     `json:"payload,omitempty" help:"Show payloads, which hold personal data: the newest ones, up to 8 MiB." env:"-"`
}

// tailed is an event with the service it is of.
type tailed struct {
	Service string `json:"service"`
	adminapi.OutboxEvent
}

const followEvery = time.Second

// Run asks every service and puts the events in the order of their time.
func (c *OutboxTail) Run(ctx context.Context, to *streams, services []*client.Service) error {
	t := table{
		columns: []string{"SERVICE", "POSITION", "TIME", "TYPE", "KEY", "VERSION", "STATE", "EVENT ID"},
		prose:   "PAYLOAD", omit: []string{"TYPE", "TIME", "KEY", "VERSION", "STATE"},
	}
	if c.Payload {
		t.columns = append(t.columns, "PAYLOAD")
	}
	if c.Follow {
		return c.follow(ctx, to, services, &t)
	}
	pages, err := c.read(ctx, services, int(c.Limit))
	if len(pages) == 0 {
		return err
	}
	return writeEvents(to, &t, err, merged(pages, int(c.Limit)))
}

// read is the newest events of each service, up to the limit. One answer goes back so far; but where new ones are
// followed, it asks on until the limit is reached or nothing older is kept.
func (c *OutboxTail) read(
	ctx context.Context, services []*client.Service, limit int,
) ([]client.Answer[adminapi.OutboxEvents], error) {
	return ask(services, func(s *client.Service) (all adminapi.OutboxEvents, err error) {
		asked := *c
		for {
			asked.Limit, asked.Before = positive(limit-len(all.Items)), all.Rest
			next, err := client.Call[adminapi.OutboxEvents](ctx, s, client.Get("/admin/v1/outbox/events", asked))
			all.Items, all.Rest = append(next.Items, all.Items...), next.Rest
			if err != nil || all.Rest == 0 || c.Follow {
				return all, err
			}
		}
	})
}

// merged are the newest events of each service, up to the limit, in the order of their time.
func merged(pages []client.Answer[adminapi.OutboxEvents], limit int) []tailed {
	events := []tailed{}
	for _, a := range pages {
		items := a.Value.Items
		for _, e := range items[max(0, len(items)-limit):] {
			events = append(events, tailed{a.Service, e})
		}
	}
	slices.SortStableFunc(events, func(a, b tailed) int { return a.OccurredAt.Compare(b.OccurredAt) })
	return events
}

// follow shows what was not there at the last look. It compares the events and not their positions: a transaction that
// commits late puts its events below ones that were seen. Each look goes as far back, so that what is older than the
// first rows is not taken for new.
func (c *OutboxTail) follow(
	ctx context.Context, to *streams, services []*client.Service, t *table,
) error {
	type place struct {
		service  string
		position int64
	}
	seen, oldest, trouble := map[place]bool{}, time.Time{}, ""
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
		switch first := oldest.IsZero() && len(pages) > 0; {
		case first && len(fresh) == 0:
			oldest = time.Now()
		case first:
			oldest, fresh = fresh[0].OccurredAt, merged(pages, int(c.Limit))
		case len(fresh) >= maxLimit:
			to.warn("events come faster than they are shown; some are left out")
		}
		if len(fresh) > 0 {
			_ = writeEvents(to, t, nil, fresh)
			t.rows, t.bare = nil, true
		}
		if now := fmt.Sprint(err); now != trouble { // written once, not with every look
			trouble = now
			return err
		}
		return nil
	})
}

// writeEvents adds them to the table.
func writeEvents(to *streams, t *table, missing error, events []tailed) error {
	for _, e := range events {
		t.add(e.Service, e.Position, moment(e.OccurredAt), e.Type, e.Key, e.Version, e.State, e.EventID,
			cmp.Or(string(e.Payload), "(left out: 8 MiB are shown)"))
	}
	return to.reply(missing, map[string]any{"items": events}, t)
}
