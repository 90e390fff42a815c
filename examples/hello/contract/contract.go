// Package contract has the event of Hello, and those of the system that it reads.
package contract

import (
	"embed"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
)

// These prefixes are those of the system.
const (
	TopicPrefix = contract.TopicPrefix
	TypePrefix  = contract.TypePrefix
)

const TopicUsers = contract.TopicUsers

var UserRegistered = contract.UserRegistered

//go:embed events/*.json
var files embed.FS

// All returns the declarations of this package.
func All() []event.Declaration { return []event.Declaration{HelloSaid.Declaration} }

// Load compiles the schemas of all events.
func Load() (*event.Checker, error) {
	system, err := contract.Load()
	if err != nil {
		return nil, err
	}
	return system.With(files, All()...)
}

func define[T event.Ruled](topic, source, service, name string) event.Definition[T] {
	return event.Define[T](event.Declaration{
		Type:       TypePrefix + service + "." + name,
		Topic:      topic,
		Source:     source,
		DataSchema: "https://example.com/twinbox/events/" + name + ".json",
	})
}
