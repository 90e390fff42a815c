// Package stacktest has helpers for tests of a whole stack.
package stacktest

import (
	"strings"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/migrations"
)

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

// Arguments are those of devstack run in dir, with these services and parts on free ports and the settings of
// [Patient].
func Arguments(dir string, list []eventing.Described, parts ...string) []string {
	args := []string{"run", "--dir", dir}
	parts = append(parts, "mailbox", "smtp", "kafka")
	for _, s := range list {
		parts = append(parts, s.Name+"-admin")
		if s.Unset().Reads("HTTP_ADDR") {
			parts = append(parts, s.Name)
		}
	}
	for _, part := range parts {
		args = append(args, "--"+part+"-addr", "127.0.0.1:0")
	}
	for _, setting := range Patient() {
		args = append(args, "--set", setting)
	}
	return args
}

// Screen keeps its text, and calls Ready with it when the stack is ready.
type Screen struct {
	Ready func(text string)

	text strings.Builder
}

// Write is called by one goroutine.
func (s *Screen) Write(p []byte) (int, error) {
	s.text.Write(p)
	if strings.Contains(s.text.String(), "Ctrl-C") {
		s.Ready(s.text.String())
	}
	return len(p), nil
}
