package servicetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
)

// RequireOwnEventsHandled fails the test if a consumer with the order Strict or Latest reads a topic of its own
// service, and has no handler for an event of the contract on it. Such a read model keeps an old version, and commands
// with it are refused. It needs no server.
func RequireOwnEventsHandled(t testing.TB, of eventing.Described) {
	t.Helper()
	found, err := of.Declare(t.Context())
	require.NoError(t, err)
	var missing []string
	for _, c := range found.Consumers {
		if c.Order != inbox.Strict && c.Order != inbox.Latest {
			continue
		}
		for _, e := range found.Events {
			if e.Source == found.Source && e.Topic == c.Topic && !c.Accepts(e.Type) {
				missing = append(missing, c.Name+" has no handler for "+e.Type+
					", an event of its service: after it the read model keeps an old version")
			}
		}
	}
	if missing != nil {
		t.Fatal(strings.Join(missing, "\n"))
	}
}

// Consumer returns the consumer of that name as the service registers it, with default settings. It needs no server.
func Consumer(t testing.TB, of eventing.Described, name string) eventing.Consumer {
	t.Helper()
	found, err := of.Declare(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(found.Consumers, func(c eventing.Consumer) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("%s has no consumer %s", of.Name, name)
	}
	return found.Consumers[at]
}

// RequireServicesAgree fails the test if two services share a source, topic or consumer's name, or if no service writes
// to an event's topic. It needs no server.
func RequireServicesAgree(t testing.TB, all ...eventing.Described) {
	t.Helper()
	declared := make([]eventing.Declared, len(all))
	for i, s := range all {
		found, err := s.Declare(t.Context())
		require.NoError(t, err)
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
