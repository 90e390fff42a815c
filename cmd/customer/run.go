package main

import (
	"context"
	"io"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/migrations"
)

const name = "customer"

// run is the whole program: what main adds is the process around it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	program := service.Program[customer.Config]{
		Name: name,
		Settings: func(cfg customer.Config) service.Settings {
			return service.Settings{AdminAddr: cfg.AdminAddr, LogLevel: cfg.LogLevel, LogFormat: cfg.LogFormat}
		},
		Serve: customer.Run,
		Migrate: func(ctx context.Context, cfg customer.Config, out io.Writer) error {
			return cfg.Migrate(ctx, out, migrations.ForCustomer()...)
		},
		Topics: func(ctx context.Context, cfg customer.Config, out io.Writer) error {
			return cfg.EnsureTopics(ctx, out, name, cfg.Topics())
		},
	}
	return program.Run(ctx, args, environ, stdout, stderr)
}
