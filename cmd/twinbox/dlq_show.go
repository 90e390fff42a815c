package main

import (
	"context"
	"fmt"
	"io"

	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// DLQShow is "twinbox dlq show".
type DLQShow struct {
	Operator `embed:""`

	ID      string `arg:"" help:"The dead letter, such as customer/17."`
	Payload bool   `help:"Show the payload too, which holds personal data." env:"-"`
}

// Run asks the service that the id names.
func (c *DLQShow) Run(ctx context.Context, to streams) error {
	services, err := c.connect()
	if err != nil {
		return err
	}
	s, detail, err := getLetter(ctx, services, c.ID, c.Payload)
	if err != nil {
		return err
	}
	if c.json() {
		return writeJSON(to.out, map[string]any{
			"letter": letter{letterID(s.Name, detail.Letter.Id), detail.Letter}, "history": deedsOf(s.Name, detail.History),
		})
	}
	return c.write(to.out, s.Name, detail)
}

func getLetter(
	ctx context.Context, services []*client.Service, id string, payload bool,
) (*client.Service, adminapi.DeadLetterDetail, error) {
	picked, err := parseIDs([]string{id}, services)
	if err != nil {
		return nil, adminapi.DeadLetterDetail{}, err
	}
	s := picked.of(services)[0]
	detail, err := client.Call[adminapi.DeadLetterDetail](ctx, s, client.Get(
		fmt.Sprintf("/admin/v1/dead-letters/%d", picked.ids[s.Name][0]), adminapi.GetDeadLetterParams{Payload: &payload}))
	return s, detail, err
}

func (c *DLQShow) write(out io.Writer, service string, d adminapi.DeadLetterDetail) error {
	l := d.Letter
	fields := [][2]any{
		{"id", letterID(service, l.Id)},
		{"consumer", l.Consumer},
		{"event", fmt.Sprintf("%s, %s", l.EventId, l.Type)},
		{"key", fmt.Sprintf("%s, version %d", l.Key, l.Version)},
		{"record", fmt.Sprintf("%s[%d]@%d, %d bytes", l.Topic, l.Partition, l.Offset, l.Bytes)},
		{"state", stateOf(l)},
		{"reason", fmt.Sprintf("%s (%s)", l.Code, l.Class)},
		{"error", l.Error},
		{"attempts", fmt.Sprintf("%d, from %s to %s", l.Attempts, moment(l.FirstFailedAt), moment(l.FailedAt))},
	}
	if l.Replays > 0 {
		fields = append(fields, [2]any{"replays", fmt.Sprintf("%d failed", l.Replays)})
	}
	if l.EditedBy != nil {
		fields = append(fields, [2]any{"edited", fmt.Sprintf("by %s at %s", *l.EditedBy, momentOf(l.EditedAt))})
	}
	if c.Payload {
		payload := textOf(l.Payload)
		if l.NullPayload != nil && *l.NullPayload {
			payload = "null: the record has no value"
		}
		fields = append(fields, [2]any{"payload", payload})
		if l.EditedPayload != nil {
			fields = append(fields, [2]any{"edited to", textOf(l.EditedPayload)})
		}
	}
	if next := nextStep(l, letterID(service, l.Id)); next != "" {
		fields = append(fields, [2]any{"next", next})
	}
	for _, a := range d.History {
		fields = append(fields, [2]any{"history", fmt.Sprintf("%s %s by %s: %s", moment(a.At), deedOf(a), a.By, a.Reason)})
	}
	for _, f := range fields {
		if _, err := fmt.Fprintf(out, "%-10s %s\n", f[0], printable(fmt.Sprint(f[1]))); err != nil {
			return &outputError{err}
		}
	}
	return nil
}

// stateOf says what the dead letter does to its key, too.
func stateOf(l adminapi.DeadLetter) string {
	switch {
	case l.State == "waiting" && l.Holds:
		return "waiting; later events of its key park behind it"
	case l.Outcome != nil:
		return fmt.Sprintf("%s (%s) at %s", l.State, *l.Outcome, momentOf(l.SettledAt))
	case l.SettledAt != nil:
		return fmt.Sprintf("%s at %s", l.State, momentOf(l.SettledAt))
	}
	return l.State
}

// nextStep is what an operator does about a dead letter that waits.
func nextStep(l adminapi.DeadLetter, id string) string {
	switch {
	case l.State != string(deadletter.Waiting):
		return ""
	case l.Code == inbox.CodeParked:
		return "replay the dead letter of its key that failed: this one follows"
	case l.Code == inbox.CodeGap:
		return "republish the event before it, which has not come, and this one follows by itself; " +
			"if it will never come, twinbox dlq replay " + id + " --accept-gap"
	case l.Code == inbox.CodeJump:
		return "if its version is wrong, twinbox dlq discard " + id + "; if it is right, and what is below it will never " +
			"come, twinbox dlq replay " + id + " --accept-gap --force"
	case l.EditedBy != nil:
		return "twinbox dlq replay " + id
	case l.Code == inbox.CodeTooOld:
		return "find out whether it was applied; then discard it, or replay it with --force"
	case l.Class == string(failure.Permanent) && l.Code != inbox.CodeHandlerFailed:
		return fmt.Sprintf("twinbox dlq edit %s and replay it, or twinbox dlq discard %s", id, id)
	}
	return "when the cause is gone, twinbox dlq replay " + id
}
