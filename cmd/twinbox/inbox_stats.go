package main

import (
	"context"
	"net/http"

	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/admin/client"
)

// InboxStats is "twinbox inbox stats". The deliveries are counted since the process that is asked started.
type InboxStats struct {
	Operator `embed:""`
}

// Run asks every service.
func (c *InboxStats) Run(ctx context.Context, to streams) error {
	services, err := c.connect()
	if err != nil {
		return err
	}
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.InboxStats, error) {
		return client.Call[adminapi.InboxStats](s, func(api *adminapi.Client) (*http.Response, error) {
			return api.GetInboxStats(ctx)
		})
	})
	if len(answers) == 0 {
		return err
	}
	if c.JSON {
		document := map[string]any{}
		for _, a := range answers {
			document[a.service.Name] = a.value
		}
		return both(writeJSON(to.out, document), err)
	}
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
	return both(t.write(to.out, to.width()), err)
}
