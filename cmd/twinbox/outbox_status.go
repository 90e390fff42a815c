package main

import (
	"context"
	"fmt"
	"time"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// OutboxStatus is "twinbox outbox status".
type OutboxStatus struct {
	Operator `embed:""`
	Watch    `embed:""`
}

// Run asks every service.
func (c *OutboxStatus) Run(ctx context.Context, to streams) error {
	return c.repeat(ctx, to, func() error {
		return survey(ctx, &c.Operator, to, client.Get("/admin/v1/outbox/status", nil), c.write)
	})
}

func (c *OutboxStatus) write(to streams, answers []answerOf[adminapi.OutboxStatus]) error {
	status := table{
		columns: []string{"SERVICE", "RELAY", "EPOCH", "HEAD", "WAITING", "OLDEST", "PARKED KEYS", "HELD"},
		omit:    []string{"EPOCH", "HEAD"},
	}
	parked := table{
		columns: []string{"SERVICE", "TOPIC", "KEY", "POSITION", "HELD", "PARKED", "NEXT TRY", "REASON"},
		prose:   []string{"REASON"}, omit: []string{"PARKED", "NEXT TRY", "HELD"},
	}
	scheduled := table{columns: []string{"SERVICE", "SCHEDULED", "OVERDUE"}}
	for _, a := range answers {
		s := a.value
		if s.Scheduled > 0 {
			scheduled.add(a.service.Name, s.Scheduled, time.Duration(s.OverdueSeconds*float64(time.Second)).Round(time.Second))
		}
		status.add(a.service.Name, relayOf(s), s.Epoch, s.Head, waitingOf(s), momentOf(s.OldestWaiting),
			len(s.Parked), s.Held)
		for _, p := range s.Parked {
			next := "on release"
			if p.RetryAt != nil {
				next = moment(*p.RetryAt)
			}
			parked.add(a.service.Name, p.Topic, p.Key, p.Position, p.Held, moment(p.ParkedAt), next, p.Reason)
		}
	}
	if err := c.show(to, &status); err != nil {
		return err
	}
	for _, more := range []*table{&scheduled, &parked} { // where there is something to show
		if len(more.rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(to.out); err != nil {
			return &outputError{err}
		}
		if err := c.show(to, more); err != nil {
			return err
		}
	}
	return nil
}

func relayOf(s adminapi.OutboxStatus) string {
	switch {
	case s.Restoring:
		return "restoring"
	case s.Leading:
		return "leading"
	}
	return "no leader"
}

func waitingOf(s adminapi.OutboxStatus) string {
	if s.WaitingMore {
		return fmt.Sprintf("%d or more", s.Waiting)
	}
	return fmt.Sprint(s.Waiting)
}
