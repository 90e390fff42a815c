package servicetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
)

// RequireOwnEventsHandled fails the test if a consumer with the order Strict or Latest reads a topic of its own
// service, and handles not all of its events. Such a read model keeps an old version, and commands with it are refused.
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

// Consumer returns the consumer of that name as the service registers it.
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
