package demo

import (
	"context"
	"fmt"
	"strings"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

type standing struct {
	waiting map[string]int // by the awaited step
	dead    int
	unsure  int // mails that may have been sent
	known   bool
	causes  []cause
}

type cause struct{ service, code, sentence string }

func (c cause) String() string { return c.service + ": " + c.sentence }

var waits = []struct{ what, kind string }{
	{"to be published", "outbox"}, {"held", "relay"}, {"to be handled", "inbox"}, {"to be mailed", "mail"},
}

func look(ctx context.Context, services []*client.Service) standing {
	now := standing{waiting: map[string]int{}, known: true}
	for _, a := range client.Ask(services, func(s *client.Service) (adminapi.Stations, error) {
		return client.Call[adminapi.Stations](ctx, s, client.Get(adminapi.StationsPath))
	}) {
		if a.Err != nil {
			now.known = false
			now.causes = append(now.causes, cause{a.Service, "away", "The service does not answer."})
		}
		for _, c := range a.Value.Causes {
			now.causes = append(now.causes, cause{a.Service, c.Code, c.What})
		}
		for _, s := range a.Value.Stations {
			now.add(s)
		}
	}
	return now
}

func (s *standing) add(at adminapi.Station) {
	s.known = s.known && at.State != "unknown"
	for _, w := range waits {
		if w.kind == at.Kind && at.Waiting != nil {
			s.waiting[w.what] += int(*at.Waiting)
		}
	}
	switch {
	case at.ForOperator == nil:
	case at.Kind == "inbox":
		s.dead += int(*at.ForOperator)
	case at.Kind == "mail":
		s.unsure += int(*at.ForOperator)
	}
}

func (s *standing) settled() bool {
	for _, n := range s.waiting {
		if n > 0 {
			return false
		}
	}
	return s.known
}

func (s *standing) String() string {
	var parts []string
	for _, w := range waits {
		if n := s.waiting[w.what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, w.what))
		}
	}
	if !s.known {
		parts = append(parts, "not all is known")
	}
	if len(parts) == 0 {
		return "nothing waits"
	}
	return strings.Join(parts, ", ")
}
