package services_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

// Two services may not share a source, topic or consumer's name, and a service writes to each event's topic.
func TestTheServicesAgree(t *testing.T) {
	t.Parallel()
	var all []eventing.Declared
	for _, s := range services.All() {
		found, err := s.Declare(t.Context())
		require.NoError(t, err)
		all = append(all, found)
	}
	require.Empty(t, findContradictions(all))
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

func TestContradictionsOfServicesAreNamedTogether(t *testing.T) {
	t.Parallel()
	thrown := event.Declaration{Type: "thrown.v1", Topic: "balls", Source: "/ann"}
	caught := event.Declaration{Type: "caught.v1", Topic: "hands", Source: "/ann"}
	lost := event.Declaration{Type: "lost.v1", Topic: "balls", Source: "/eve"}
	ann := eventing.Declared{
		Service: "ann", Source: "/ann", Topics: []kafka.Topic{{Name: "balls"}},
		Consumers: []eventing.Consumer{{Name: "ann.reads"}}, Events: []event.Declaration{thrown},
	}
	bob := eventing.Declared{Service: "bob", Source: "/bob", Events: []event.Declaration{thrown}}
	require.Empty(t, findContradictions([]eventing.Declared{ann, bob}))

	bob.Source, bob.Topics, bob.Consumers = ann.Source, ann.Topics, ann.Consumers
	bob.Events = []event.Declaration{thrown, caught, lost}
	require.Equal(t, []string{
		"ann and bob have the same source: /ann",
		"ann and bob have the same topic: balls",
		"ann and bob have the same consumer: ann.reads",
		"ann writes caught.v1, but Topics of its Config lacks hands",
		"no service has the source of lost.v1: /eve",
	}, findContradictions([]eventing.Declared{ann, bob}))
}
