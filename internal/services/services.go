// Package services lists the services of this project. What runs, operates or documents all of them reads this list, so
// that a new service is one line here.
package services

import (
	"context"

	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/frame/config"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/migrations"
)

// All lists them in the order of every output, and in that in which they are started.
func All() []Service {
	return []Service{
		describe("customer", migrations.ForCustomer(), customer.Run),
		describe("notification", migrations.ForNotification(), notification.Run),
	}
}

// Names are theirs.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Service is what others need to know of one.
type Service struct {
	Name       string
	Migrations []migrations.Set // of its database, in the order of application

	load func(environ []string) (*Instance, error)
}

// Config is what every service's configuration can say.
type Config interface {
	Topics() []kafka.Topic
	Client(service string) kafka.Config
	Rules() []config.Rule
}

// Instance is a service with its configuration.
type Instance struct {
	Config

	settings func() []config.Setting
	run      func(ctx context.Context, host service.Host) error
}

func describe[C Config](
	name string, sets []migrations.Set, run func(ctx context.Context, cfg C, host service.Host) error,
) Service {
	return Service{Name: name, Migrations: sets, load: func(environ []string) (*Instance, error) {
		cfg := new(C)
		err := config.Load(environ, cfg)
		return &Instance{
			Config:   *cfg,
			settings: func() []config.Setting { return config.Describe(cfg) },
			run:      func(ctx context.Context, host service.Host) error { return run(ctx, *cfg, host) },
		}, err
	}}
}

// Load reads the service's configuration as its program would. Beside an error it returns what could be read.
func (s Service) Load(environ []string) (*Instance, error) { return s.load(environ) }

// Unset is the service with the defaults alone, which do not suffice to run it.
func (s Service) Unset() *Instance {
	instance, _ := s.load(nil) // what is required is missing
	return instance
}

// Settings are the variables that the service reads, with the values in effect.
func (i *Instance) Settings() []config.Setting { return i.settings() }

// Reads reports whether the service knows the variable.
func (i *Instance) Reads(variable string) bool { _, known := i.setting(variable); return known }

// Value is a variable's value in effect, "" where the service does not know it.
func (i *Instance) Value(variable string) string {
	setting, _ := i.setting(variable)
	return setting.Value
}

func (i *Instance) setting(variable string) (config.Setting, bool) {
	for _, setting := range i.settings() {
		if setting.Variable == variable {
			return setting, true
		}
	}
	return config.Setting{}, false
}

// Run runs the service until ctx ends, and drains it.
func (i *Instance) Run(ctx context.Context, host service.Host) error { return i.run(ctx, host) }
