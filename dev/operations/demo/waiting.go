package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/metrics"
	"example.com/twinbox/internal/service"
)

// standing is what the services say of what is not done yet, added up.
type standing struct {
	waiting map[string]int // by what it waits for
	dead    int            // dead letters
	unsure  int            // mails of which it is not known whether they were sent
	known   bool           // all of that is known
	causes  []cause        // of the services that wait
	err     error          // of the first that does not answer
}

// cause is why a service waits.
type cause struct{ service, code, sentence string }

func (c cause) String() string { return c.service + ": " + c.sentence }

// waits are the metrics that count what waits, with the states that do.
var waits = []struct {
	what, metric string
	states       []string
}{
	{"to be published", "outbox_relay_lag_events", nil},
	{"held", "outbox_relay_held_events", nil},
	{"to be handled", "kafka_consumer_lag_records", nil},
	{"to be mailed", "lease_rows", []string{"pending", "claimed", "submitting"}}, // what the sender will still send
}

// look asks all services at once.
func look(ctx context.Context, services []*client.Service) standing {
	samples, errs := make([]metrics.Sample, len(services)), make([]error, len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() { samples[i], errs[i] = metrics.Take(ctx, s) })
	}
	all.Wait()
	now := standing{waiting: map[string]int{}, known: true}
	for i, s := range services {
		switch why := samples[i].Ready.Cause; {
		case errs[i] != nil:
			now.known = false
			if now.err == nil {
				now.err = errs[i]
			}
			now.causes = append(now.causes, cause{s.Name, "away", "The service does not answer."})
		case why != nil && why.Code != service.CodeAllWell:
			now.causes = append(now.causes, cause{s.Name, why.Code, why.Sentence})
		}
		now.add(samples[i].Metrics)
	}
	return now
}

func (s *standing) add(found metrics.Set) {
	sources := found["metrics_source_up"]
	s.known = s.known && len(sources) > 0
	for _, source := range sources {
		s.known = s.known && source.Value == 1
	}
	for _, w := range waits {
		for _, line := range found[w.metric] {
			if w.states == nil || slices.Contains(w.states, line.Labels["state"]) {
				s.waiting[w.what] += int(line.Value)
			}
		}
	}
	for _, line := range found["dead_letters_waiting"] {
		s.dead += int(line.Value)
	}
	for _, line := range found.Having("lease_rows", "state", "uncertain") {
		s.unsure += int(line.Value)
	}
}

// settled says that nothing waits.
func (s *standing) settled() bool {
	for _, n := range s.waiting {
		if n > 0 {
			return false
		}
	}
	return s.known
}

// String says what waits, and where.
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
