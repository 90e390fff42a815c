package servicetest_test

import (
	"testing"
	"testing/fstest"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

func TestAReadModelThatMissesAnEventOfItsServiceIsFound(t *testing.T) {
	t.Parallel()
	thrown, caught := thrownBy("ann").Declaration, thrownBy("ann").Declaration
	caught.Type = "game.caught-by-ann.v1"
	others, unread := thrownBy("bob").Declaration, thrownBy("bob").Declaration
	unread.Type = "game.caught-by-bob.v1"
	for name, test := range map[string]struct {
		topic string
		order inbox.Order
		types []string
		want  string
	}{
		"handles all":        {thrown.Topic, inbox.Strict, []string{thrown.Type, caught.Type}, ""},
		"unordered":          {thrown.Topic, inbox.Unordered, []string{thrown.Type}, ""},
		"of another's topic": {others.Topic, inbox.Strict, []string{others.Type}, ""},
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
				Name: "ann", Source: thrown.Source,
				Migrations: []migrations.Set{migrations.Audit, migrations.Outbox, migrations.Inbox},
				Contract: func() (*event.Checker, error) {
					return event.LoadSchemas(fstest.MapFS{"events/any.json": {Data: []byte(`{"$id":"` + schemaID + `"}`)}},
						thrown, caught, others, unread)
				},
				SetUp: func(node *eventing.Node, _ settings) error {
					return node.Consume(eventing.Consumer{
						Name: "ann.reads", Topic: test.topic, Order: test.order, Types: test.types,
						Handler: func(*message.Message) error { return nil },
					})
				},
			}
			require.Equal(t, test.types, servicetest.Consumer(t, s.Describe(), "ann.reads").Types)
			require.Equal(t, "ann has no consumer ann.writes", testkit.FailureText(t, func(t testing.TB) {
				servicetest.Consumer(t, s.Describe(), "ann.writes")
			}))
			require.Equal(t, test.want, testkit.FailureText(t, func(t testing.TB) {
				servicetest.RequireOwnEventsHandled(t, s.Describe())
			}))
		})
	}
}
