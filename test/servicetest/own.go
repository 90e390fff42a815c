package servicetest

import (
	"slices"
	"testing"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
)

// RequireOwnEventsHandled fails the test if a read model of the service misses one of the service's own events: if a
// consumer with the order Strict or Latest reads a topic that the service writes to, and has no handler for an event
// that is declared there. Such a read model keeps an old version, and commands with this version are refused.
// Consumers of other topics may handle the types that they need.
//
// It needs no server. The service's Environ may have variables that the service does not read.
func RequireOwnEventsHandled(t testing.TB, of Part, declared ...event.Declaration) {
	t.Helper()
	environ := slices.Concat(patient, []string{
		"DATABASE_URL=postgres://nobody@127.0.0.1:1/none", "KAFKA_BROKERS=127.0.0.1:1",
	}, of.Environ)
	instance, err := of.Load(known(Part{Described: of.Described}, environ))
	if err != nil {
		t.Fatalf("configure %s: %v", of.Name, err)
	}
	found, err := instance.Declared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Consumers {
		isOwn := func(topic kafka.Topic) bool { return topic.Name == c.Topic }
		isReadModel := c.Order == inbox.Strict || c.Order == inbox.Latest
		if !isReadModel || !slices.ContainsFunc(found.Topics, isOwn) {
			continue
		}
		for _, e := range declared {
			if e.Topic == c.Topic && !c.Accepts(e.Type) {
				t.Fatalf("%s has no handler for %s, an event of its service: after it the read model keeps an old version",
					c.Name, e.Type)
			}
		}
	}
}
