package main

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// InboxCommands are "twinbox inbox ...".
type InboxCommands struct {
	Stats   InboxStats   `cmd:"" help:"How far each consumer is behind, and its deliveries in the process that answers."`
	Lookup  InboxLookup  `cmd:"" help:"What became of one event, in every consumer."`
	History InboxHistory `cmd:"" help:"The events of a type that consumers have applied, the newest first. --since and --until are compared with the time inside the event's id."`
}

// InboxStats is "twinbox inbox stats": what waits for each consumer, the same from every instance, and the deliveries
// to the one process that answers, since it started.
type InboxStats struct{ Survey }

// deliveries are the columns of the second table and the outcomes that each counts.
var deliveries = []struct {
	column   string
	outcomes []string
}{
	{"APPLIED", []string{"applied"}},
	{"DUPLICATE", []string{"duplicate"}},
	{"STALE", []string{"stale"}},
	{"PARKED", []string{"parked", "gap"}},
	{"GIVEN UP", []string{"dead", "conflict", "expired"}},
}

// Run asks every service.
func (c *InboxStats) Run(ctx context.Context, to *streams) error {
	waiting := table{columns: []string{"CONSUMER", "LAG", "OLDEST", "DEAD", "PARKED"}}
	done := table{
		title:   "Deliveries to the process that answers, since it started:\n",
		columns: []string{"CONSUMER", "SINCE"}, omit: []string{"SINCE"},
	}
	for _, d := range deliveries {
		done.columns = append(done.columns, d.column)
	}
	done.columns = append(done.columns, "OTHER")
	return survey(ctx, to, &c.Survey, client.Get("/admin/v1/inbox/stats", nil), func(_ string, said adminapi.InboxStats) {
		for _, s := range said.Items {
			lag := "unknown"
			if s.LagRecords != nil {
				lag = fmt.Sprint(*s.LagRecords)
			}
			waiting.add(s.Consumer, lag, seconds(value(s.LagSeconds)), s.Dead, s.Parked)
			done.add(deliveriesOf(said.StartedAt, s)...)
		}
	}, &waiting, &done)
}

// deliveriesOf is a row of the second table. What no column counts is in the last one.
func deliveriesOf(since time.Time, s adminapi.ConsumerStats) []any {
	row, other := []any{s.Consumer, moment(since)}, int64(0)
	for _, n := range s.Outcomes {
		other += n
	}
	for _, d := range deliveries {
		var n int64
		for _, outcome := range d.outcomes {
			n += s.Outcomes[outcome]
		}
		row, other = append(row, n), other-n
	}
	return append(row, other)
}

// InboxLookup is "twinbox inbox lookup".
type InboxLookup struct {
	Operator

	EventID string `arg:"" name:"event-id" help:"The event."`
}

// known is what a consumer knows, with its service, and the dead letter as other commands take it.
type known struct {
	Service string `json:"service"`
	adminapi.InboxEvent
	DeadLetter string `json:"dead_letter,omitempty"` // in place of the embedded one
}

// AfterApply refuses what is no id.
func (c *InboxLookup) AfterApply() error {
	if n := utf8.RuneCountInString(c.EventID); n == 0 || n > event.MaxIDLength {
		return usage(fmt.Sprintf("an event id has 1 to %d characters", event.MaxIDLength))
	}
	return nil
}

// Run asks every service.
func (c *InboxLookup) Run(ctx context.Context, to *streams, services []*client.Service) error {
	answers, err := ask(services, call[adminapi.InboxEvents](ctx,
		client.Get("/admin/v1/inbox/events", adminapi.LookupInboxEventParams{EventID: c.EventID})))
	if len(answers) == 0 {
		return err
	}
	found, noted := []known{}, false
	t := table{
		columns: []string{"CONSUMER", "OUTCOME", "PROCESSED", "TYPE", "RECORD", "DEAD LETTER"},
		omit:    []string{"TYPE", "RECORD", "PROCESSED"}, prose: "METADATA",
	}
	for _, a := range answers {
		for _, e := range a.Value.Items {
			k := known{Service: a.Service, InboxEvent: e}
			if e.DeadLetter != 0 {
				k.DeadLetter = letterID(k.Service, e.DeadLetter)
			}
			found, noted = append(found, k), noted || e.Metadata != nil
		}
	}
	if len(found) == 0 && err == nil {
		return notFound("no consumer remembers the event " + printable(c.EventID) +
			": it has not come, is forgotten, or is of a type that none handles")
	}
	if noted {
		t.columns = append(t.columns, "METADATA")
	}
	for _, k := range found {
		t.add(k.Consumer, k.Outcome, moment(k.ProcessedAt), k.Type, recordOf(k.InboxEvent),
			k.DeadLetter, string(k.Metadata))
	}
	return to.reply(err, map[string]any{"items": found}, &t)
}

// recordOf says where the record lay; what was processed without a broker lay nowhere.
func recordOf(e adminapi.InboxEvent) string {
	if e.Topic == "" {
		return ""
	}
	return fmt.Sprintf("%s[%d]@%d", e.Topic, e.Partition, e.Offset)
}

// InboxHistory is "twinbox inbox history".
type InboxHistory struct {
	Operator
	Window

	Type     string   `arg:"" help:"The type of the events."`
	Consumer string   `help:"Applied by this consumer." env:"-"`
	Limit    positive `help:"The newest of each service, 1 to 1000. Default: 100." default:"100" short:"n" env:"-" placeholder:"N"`
}

// AfterApply refuses a type that no event has.
func (c *InboxHistory) AfterApply() error {
	if n := utf8.RuneCountInString(c.Type); n == 0 || n > maxTypeLength {
		return usage(fmt.Sprintf("an event type has 1 to %d characters", maxTypeLength))
	}
	return c.Window.AfterApply()
}

const maxTypeLength = 255

// Run asks every service that has the consumer.
func (c *InboxHistory) Run(ctx context.Context, to *streams, services []*client.Service) error {
	if c.Consumer != "" {
		var err error
		if services, err = withConsumer(ctx, services, c.Consumer); err != nil {
			return err
		}
	}
	answers, err := ask(services, call[adminapi.InboxHistory](ctx,
		client.Get("/admin/v1/inbox/history", adminapi.GetInboxHistoryParams{
			Type: c.Type, Consumer: c.Consumer, Since: c.Since.Time, Until: c.Until.Time, Limit: int(c.Limit),
		})))
	if len(answers) == 0 {
		return err
	}
	found, more, unread := []known{}, []string{}, map[string]time.Time{}
	for _, a := range answers {
		for _, e := range a.Value.Items {
			found = append(found, known{Service: a.Service, InboxEvent: e})
		}
		if a.Value.More {
			more = append(more, a.Service)
		}
		if a.Value.Unread != nil {
			unread[a.Service] = *a.Value.Unread
		}
	}
	slices.SortStableFunc(found, func(a, b known) int { return b.ProcessedAt.Compare(a.ProcessedAt) })
	err = to.reply(err, map[string]any{"items": found, "more": more, "unread": unread}, historyTable(c.Type, found))
	for _, service := range more {
		to.warn("%s has more and older events: give --until, or a larger --limit", service)
	}
	for _, service := range inOrder(unread) {
		at := unread[service].UTC()
		to.warn("%s has too many rows to read all: events of %s and older may be missing; continue with --until %s", service,
			at.Format(milliseconds), at.Add(time.Millisecond).Format(milliseconds))
	}
	return err
}

func historyTable(eventType string, found []known) *table {
	t := &table{
		columns: []string{"CONSUMER", "EVENT", "PROCESSED", "MS", "OUTCOME", "RECORD"}, prose: "METADATA",
		omit: []string{"OUTCOME", "RECORD", "MS"},
		none: "No consumer has applied an event of this type. Dead letters: twinbox dlq list --each --state all --type " +
			printable(eventType) + "\n",
	}
	if slices.ContainsFunc(found, func(k known) bool { return k.Metadata != nil }) {
		t.columns = append(t.columns, "METADATA")
	}
	for _, k := range found {
		took := ""
		if k.ProcessingTimeMs != nil {
			took = fmt.Sprint(*k.ProcessingTimeMs)
		}
		t.add(k.Consumer, k.EventID, moment(k.ProcessedAt), took, k.Outcome, recordOf(k.InboxEvent), string(k.Metadata))
	}
	return t
}

// ConsumerCommands are "twinbox consumer ...".
type ConsumerCommands struct {
	List   ConsumerList   `cmd:"" help:"The consumers, which of them are paused, by whom and why."`
	Pause  ConsumerChange `cmd:"" post:"/admin/v1/consumers/pause" done:"Paused" would:"pause" thing:"consumer" help:"Pause a consumer: its instances handle no more records, its records wait on the topic."`
	Resume ConsumerChange `cmd:"" post:"/admin/v1/consumers/resume" done:"Resumed" would:"resume" thing:"consumer" help:"Let a paused consumer go on, where it stopped."`
}

// ConsumerList is "twinbox consumer list".
type ConsumerList struct{ Survey }

// Run asks every service.
func (c *ConsumerList) Run(ctx context.Context, to *streams) error {
	t := table{
		columns: []string{"CONSUMER", "STATE", "SINCE", "BY", "REASON"}, prose: "REASON", omit: []string{"SINCE", "BY"},
	}
	return survey(ctx, to, &c.Survey, client.Get("/admin/v1/inbox/stats", nil), func(_ string, said adminapi.InboxStats) {
		for _, s := range said.Items {
			if p := s.Paused; p != nil {
				t.add(s.Consumer, "paused", moment(p.Since), p.By, p.Reason)
			} else {
				t.add(s.Consumer, "running", "", "", "")
			}
		}
	}, &t)
}

// ConsumerChange is "twinbox consumer pause" and "... resume".
type ConsumerChange struct {
	Change

	Name string `arg:"" json:"consumer" help:"The consumer, as \"consumer list\" shows it."`
}
