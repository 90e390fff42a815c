package servicetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
	for _, s := range all {
		for _, e := range s.Events { // several services know an event
			owner, isKnown := owners["source"+e.Source]
			problem := ""
			switch {
			case !isKnown:
				problem = fmt.Sprintf("no service has the source of %s: %s", e.Type, e.Source)
			case owners["topic"+e.Topic] != owner:
				problem = fmt.Sprintf("%s writes %s, but Topics of its Config lacks %s", owner, e.Type, e.Topic)
			}
			if problem != "" && !slices.Contains(problems, problem) {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}
