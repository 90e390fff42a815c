package servicetest_test

import (
	"net"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func TestAReadModelThatMissesAnEventOfItsServiceIsFound(t *testing.T) {
	t.Parallel()
	thrown, caught := thrownBy("ann").Declaration, thrownBy("ann").Declaration
	caught.Type = "game.caught-by-ann.v1"
	for name, test := range map[string]struct {
		topic string
		order inbox.Order
		types []string
		want  string
	}{
		"handles all":        {thrown.Topic, inbox.Strict, []string{thrown.Type, caught.Type}, ""},
		"unordered":          {thrown.Topic, inbox.Unordered, []string{thrown.Type}, ""},
		"of another's topic": {"game.bob.v1", inbox.Strict, []string{thrown.Type}, ""},
		"strict": {
			thrown.Topic, inbox.Strict,
			[]string{thrown.Type},
			"ann.reads has no handler for game.caught-by-ann.v1, an event of " +
				"its service: after it the read model keeps an old version",
		},
		"latest": {
			thrown.Topic, inbox.Latest,
			[]string{caught.Type},
			"ann.reads has no handler for game.thrown-by-ann.v1, an event of " +
				"its service: after it the read model keeps an old version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := eventing.Service[settings]{
				Name: "ann", Source: "/ann", Migrations: []migrations.Set{migrations.Audit, migrations.Outbox, migrations.Inbox},
				Contract: func() (*event.Checker, error) { return &event.Checker{}, nil },
				SetUp: func(node *eventing.Node, _ settings) (func(*service.Group, net.Listener), error) {
					return nil, node.Consume(eventing.Consumer{
						Name: "ann.reads", Topic: test.topic, Order: test.order, Types: test.types,
						Handler: func(*message.Message) error { return nil },
					})
				},
			}
			part := servicetest.Part{Described: s.Describe(), Environ: []string{"PLAYER=ann", "NOT_READ=1"}}
			require.Equal(t, test.want, testkit.FailureText(t, func(t testing.TB) {
				servicetest.RequireOwnEventsHandled(t, part, thrown, caught)
			}))
		})
	}
}
