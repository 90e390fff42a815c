// Package contract declares the business events: topic, source, schema in api/events, and payload. Writers and readers
// check them with [Load].
package contract

import (
	"slices"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/event"
)

// TopicPrefix begins every topic's name, TypePrefix every event type. dev/rename.sh sets both.
const (
	TopicPrefix = ""
	TypePrefix  = "com.example."
)

var all []event.Declaration

// All returns every declaration, in the order of the definitions.
func All() []event.Declaration { return slices.Clone(all) }

// Load compiles the schemas of all events. It fails only when one is broken or missing.
func Load() (*event.Checker, error) { return event.LoadSchemas(api.Files, All()...) }

// define declares an event, and lists it in [All].
func define[T event.Ruled](topic, source, service, name string) event.Definition[T] {
	definition := event.Define[T](event.Declaration{
		Type:       TypePrefix + service + "." + name,
		Topic:      topic,
		Source:     source,
		DataSchema: "https://example.com/twinbox/events/" + name + ".json",
	})
	all = append(all, definition.Declaration)
	return definition
}
