package main

import (
	"context"
	"net/http"

	"example.com/twinbox/internal/admin/adminapi"
)

// InboxStats is "twinbox inbox stats". The deliveries are counted since the process that is asked started.
type InboxStats struct {
	Operator `embed:""`
}

// Run asks every service.
func (c *InboxStats) Run(ctx context.Context, to streams) error {
	return survey(ctx, &c.Operator, to, func(ctx context.Context, api *adminapi.Client) (*http.Response, error) {
		return api.GetInboxStats(ctx)
	}, c.write)
}

func (*InboxStats) write(to streams, answers []answerOf[adminapi.InboxStats]) error {
	t := table{columns: []string{"CONSUMER", "APPLIED", "DUPLICATE", "STALE", "OTHER", "DEAD", "PARKED"}}
	for _, a := range answers {
		for _, s := range a.value.Items {
			applied, duplicate, stale := s.Outcomes["applied"], s.Outcomes["duplicate"], s.Outcomes["stale"]
			other := -applied - duplicate - stale
			for _, n := range s.Outcomes {
				other += n
			}
			t.add(s.Consumer, applied, duplicate, stale, other, s.Dead, s.Parked)
		}
	}
	return t.write(to.out, to.width())
}
