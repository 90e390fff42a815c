package servicetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/eventing"
)

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
