// Package contract declares the business events: topic, source, schema in api/events, and payload. Writers and readers
// check them with [Load].
package contract

import (
	"example.com/twinbox/api"
	"example.com/twinbox/internal/event"
)

// TopicPrefix begins every topic's name, TypePrefix every event type. dev/rename.sh sets both.
const (
	TopicPrefix = ""
	TypePrefix  = "com.example."
)

// All returns every declaration, in the order in which a user meets the events.
func All() []event.Declaration {
	return []event.Declaration{
		UserRegistered.Declaration, VerificationEmailSent.Declaration, EmailVerified.Declaration, UserRenamed.Declaration,
		// make new-service adds lines here.
	}
}

// Load compiles the schemas of all events. It fails only when one is broken or missing.
func Load() (*event.Checker, error) { return event.LoadSchemas(api.Files, All()...) }

func define[T event.Ruled](topic, source, service, name string) event.Definition[T] {
	return event.Define[T](event.Declaration{
		Type:       TypePrefix + service + "." + name,
		Topic:      topic,
		Source:     source,
		DataSchema: "https://example.com/twinbox/events/" + name + ".json",
	})
}
