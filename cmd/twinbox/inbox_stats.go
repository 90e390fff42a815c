package main

import (
	"context"
	"fmt"
	"time"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// InboxStats is "twinbox inbox stats": what waits for each consumer, the same from every
// instance, and the deliveries to the one process that answers, since it started.
type InboxStats struct {
	Operator `embed:""`
	Watch    `embed:""`
}

// Run asks every service.
func (c *InboxStats) Run(ctx context.Context, to streams) error {
	return c.repeat(ctx, to, func() error {
		return survey(ctx, &c.Operator, to, client.Get("/admin/v1/inbox/stats", nil), c.write)
	})
}

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

func (c *InboxStats) write(to streams, answers []answerOf[adminapi.InboxStats]) error {
	waiting := table{columns: []string{"CONSUMER", "LAG", "OLDEST", "DEAD", "PARKED"}}
	done := table{columns: []string{"CONSUMER", "SINCE"}, omit: []string{"SINCE"}}
	for _, d := range deliveries {
		done.columns = append(done.columns, d.column)
	}
	done.columns = append(done.columns, "OTHER")
	for _, a := range answers {
		for _, s := range a.value.Items {
			waiting.add(s.Consumer, lagOf(s), ageOf(s), s.Dead, s.Parked)
			done.add(deliveriesOf(a.value.StartedAt, s)...)
		}
	}
	if err := c.show(to, &waiting); err != nil || len(done.rows) == 0 {
		return err
	}
	const heading = "\nDeliveries to the process that answers, since it started:\n"
	if _, err := fmt.Fprint(to.out, heading); err != nil {
		return &outputError{err}
	}
	return c.show(to, &done)
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

func lagOf(s adminapi.ConsumerStats) string {
	if s.LagRecords == nil {
		return "unknown"
	}
	return fmt.Sprint(*s.LagRecords)
}

func ageOf(s adminapi.ConsumerStats) string {
	if s.LagSeconds == nil || *s.LagSeconds == 0 {
		return "-"
	}
	return time.Duration(*s.LagSeconds * float64(time.Second)).Round(time.Second).String()
}
