package main

import (
	"context"
	"io"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/migrations"
)

const name = "notification"

// run is the whole program: what main adds is the process around it.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	program := service.Program[notification.Config]{
		Name: name,
		Settings: func(cfg notification.Config) service.Settings {
			return service.Settings{AdminAddr: cfg.AdminAddr, LogLevel: cfg.LogLevel, LogFormat: cfg.LogFormat}
		},
		Serve: notification.Run,
		Migrate: func(ctx context.Context, cfg notification.Config, out io.Writer) error {
			return cfg.Migrate(ctx, out, migrations.ForNotification()...)
		},
		Topics: func(ctx context.Context, cfg notification.Config, out io.Writer) error {
			return cfg.EnsureTopics(ctx, out, name, cfg.Topics())
		},
	}
	return program.Run(ctx, args, environ, stdout, stderr)
}
