// Package stacktest has helpers for tests of a whole stack.
package stacktest

import (
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/migrations"
)

// Settings are those of [Service].
type Settings struct {
	AdminAddr string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:0" format:"listen" doc:"listener of operators"`

	eventing.Config
}

func (c Settings) Listeners() service.Listeners { return service.Listeners{Admin: c.AdminAddr} }

func (c Settings) Topics() []kafka.Topic { return nil }

func (c Settings) Rules() []config.Rule { return c.Config.Rules() }

// Service returns a service with an outbox and an inbox, without events, consumers and an API.
func Service(name string) eventing.Service[Settings] {
	return eventing.Service[Settings]{
		Name: name, Source: "/" + name,
		Contract:   func() (*event.Checker, error) { return new(event.Checker), nil },
		Migrations: []migrations.Set{migrations.Audit, migrations.Outbox, migrations.Inbox},
		SetUp:      func(*eventing.Node, Settings) error { return nil },
	}
}

// Patient returns settings under which a slow machine loses no lease, repeats no batch or mail, and logs no warning.
func Patient() []string {
	settings := []string{"OUTBOX_LEASE=40s", "KAFKA_PUBLISH_TIMEOUT=20s", "KAFKA_SESSION_TIMEOUT=1m"}
	for _, s := range services.All() {
		if s.Unset().Reads("SMTP_TIMEOUT") {
			settings = append(settings, "SMTP_TIMEOUT=15s")
		}
	}
	return settings
}
