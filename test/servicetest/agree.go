package servicetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/eventing"
)

// RequireServicesAgree fails the test if two services share a source, topic or consumer's name, or if no service writes
// to an event's topic. It needs no server.
func RequireServicesAgree(t testing.TB, all ...eventing.Described) {
	t.Helper()
	declared := make([]eventing.Declared, len(all))
	for i, s := range all {
		found, err := s.Declare(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		declared[i] = found
	}
	if problems := findContradictions(declared); problems != nil {
		t.Fatal(strings.Join(problems, "\n"))
	}
}

func findContradictions(all []eventing.Declared) (problems []string) {
	owners := map[string]string{}
	claim := func(service, kind, name string) {
		if owner, isTaken := owners[kind+name]; isTaken {
			problems = append(problems, fmt.Sprintf("%s and %s have the same %s: %s", owner, service, kind, name))
			return
		}
		owners[kind+name] = service
	}
	for _, s := range all {
		claim(s.Service, "source", s.Source)
		for _, topic := range s.Topics {
			claim(s.Service, "topic", topic.Name)
		}
		for _, c := range s.Consumers {
			claim(s.Service, "consumer", c.Name)
		}
	}
	for _, e := range eventsOf(all) {
		at := slices.IndexFunc(all, func(s eventing.Declared) bool { return s.Source == e.Source })
		switch {
		case at < 0:
			problems = append(problems, fmt.Sprintf("no service has the source of %s: %s", e.Type, e.Source))
		case !writesTo(all[at], e.Topic):
			problems = append(problems, fmt.Sprintf("%s writes %s, but Topics of its Config lacks %s",
				all[at].Service, e.Type, e.Topic))
		}
	}
	return problems
}

func eventsOf(all []eventing.Declared) (events []event.Declaration) {
	seen := map[string]bool{}
	for _, s := range all {
		for _, e := range s.Events {
			if !seen[e.Type] {
				seen[e.Type] = true
				events = append(events, e)
			}
		}
	}
	return events
}

func writesTo(s eventing.Declared, topic string) bool {
	return slices.ContainsFunc(s.Topics, func(t kafka.Topic) bool { return t.Name == topic })
}
