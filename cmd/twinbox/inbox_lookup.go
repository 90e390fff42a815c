package main

import (
	"cmp"
	"context"
	"fmt"
	"unicode/utf8"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// InboxLookup is "twinbox inbox lookup".
type InboxLookup struct {
	Operator `embed:""`

	EventID string `arg:"" name:"event-id" help:"The event."`
}

// unknownEventError is an event that no consumer remembers.
type unknownEventError struct{ id string }

func (e *unknownEventError) Error() string {
	return "no consumer remembers the event " + e.id + ": it has not come, is forgotten, or is of a type that none handles"
}
func (*unknownEventError) ExitCode() int     { return exitNotFound }
func (*unknownEventError) ErrorCode() string { return "not_found" }

// known is what a consumer knows, with its service, and the dead letter as other commands take it.
type known struct {
	Service string `json:"service"`
	adminapi.InboxEvent
	DeadLetter string `json:"dead_letter,omitempty"` // in place of the embedded one
}

// Run asks every service.
func (c *InboxLookup) Run(ctx context.Context, to streams) error {
	if n := utf8.RuneCountInString(c.EventID); n == 0 || n > cloudevent.MaxIDLength {
		return usage(fmt.Sprintf("an event id has 1 to %d characters", cloudevent.MaxIDLength))
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.InboxEvents, error) {
		return client.Call[adminapi.InboxEvents](ctx, s,
			client.Get("/admin/v1/inbox/events", adminapi.LookupInboxEventParams{EventId: c.EventID}))
	})
	found := []known{}
	t := table{
		columns: []string{"CONSUMER", "OUTCOME", "PROCESSED", "TYPE", "RECORD", "DEAD LETTER", "METADATA"},
		omit:    []string{"TYPE", "RECORD", "PROCESSED"}, prose: []string{"METADATA"},
	}
	noted := false
	for _, a := range answers {
		for _, e := range a.value.Items {
			k := known{Service: a.service.Name, InboxEvent: e}
			if e.DeadLetter != nil {
				k.DeadLetter = letterID(k.Service, *e.DeadLetter)
			}
			found = append(found, k)
			t.add(e.Consumer, outcomeOf(e), momentOf(e.ProcessedAt), orDash(e.Type), recordOf(e), cmp.Or(k.DeadLetter, "-"),
				cmp.Or(string(e.Metadata), "-"))
			noted = noted || e.Metadata != nil
		}
	}
	if !noted {
		t.without("METADATA")
	}
	switch {
	case len(answers) == 0:
		return err
	case len(found) == 0 && err == nil:
		return &unknownEventError{printable(c.EventID)}
	case c.json():
		return both(writeJSON(to.out, map[string]any{"items": found}), err)
	}
	return both(c.show(to, &t), err)
}

// outcomeOf tells of another record under the same id, too.
func outcomeOf(e adminapi.InboxEvent) string {
	if e.Conflict == nil {
		return e.Outcome
	}
	return e.Outcome + ", warned of another at " + *e.Conflict
}

// recordOf says where the record lay; what was processed without a broker lay nowhere.
func recordOf(e adminapi.InboxEvent) string {
	if e.Topic == nil || *e.Topic == "" || e.Partition == nil || e.Offset == nil {
		return "-"
	}
	return fmt.Sprintf("%s[%d]@%d", *e.Topic, *e.Partition, *e.Offset)
}
