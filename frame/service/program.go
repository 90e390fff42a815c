package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"example.com/twinbox/frame/config"
)

// A Program is the command line of one service with the config C: serve (the default), migrate, topics, healthcheck
// and config. Every command reads the whole configuration first, and does nothing when that has a problem; config
// alone still lists the settings, since an operator needs the list to set them.
type Program[C any] struct {
	Name     string
	Settings func(cfg C) Settings

	// Serve runs the service until ctx is cancelled.
	Serve func(ctx context.Context, cfg C, host Host) error

	// Migrate and Topics bring database and broker to what this build needs and say on out what they did. A program that
	// has neither leaves them out, and has no such command.
	Migrate func(ctx context.Context, cfg C, out io.Writer) error
	Topics  func(ctx context.Context, cfg C, out io.Writer) error
}

// Settings is what a program itself needs of its config.
type Settings struct{ AdminAddr, LogLevel, LogFormat string }

const commandConfig = "config"

// The exit codes of a program.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2 // the command line or the configuration is wrong; a restart will not help
)

// Run runs one command and returns the exit code. Results go to stdout; logs and errors to stderr.
func (p Program[C]) Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	err := p.run(ctx, args, environ, stdout, stderr)
	if err == nil {
		return ExitOK
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) && !isHealthcheck(args) {
		return coded.ExitCode()
	}
	return ExitFailure
}

func (p Program[C]) run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	command := "serve"
	if len(args) > 0 {
		command = args[0]
	}
	switch {
	case command == "help" || command == "-h" || command == "--help":
		return p.usage(stdout)
	case len(args) > 1:
		return &usageError{fmt.Sprintf("%s takes no arguments; %s help lists the commands", command, p.Name)}
	}
	run, known := p.commands()[command]
	if !known {
		return &usageError{fmt.Sprintf("unknown command %q; %s help lists the commands", command, p.Name)}
	}
	var cfg C
	if err := config.Load(environ, &cfg); err != nil {
		if command == commandConfig {
			err = errors.Join(err, printConfig(cfg, stdout))
		}
		return err
	}
	return run(ctx, cfg, stdout, stderr)
}

// isHealthcheck: container runtimes know 0 and 1 as a health check's exit codes and keep 2 to themselves.
func isHealthcheck(args []string) bool { return len(args) == 1 && args[0] == "healthcheck" }

type command[C any] func(ctx context.Context, cfg C, stdout, stderr io.Writer) error

func (p Program[C]) commands() map[string]command[C] {
	all := map[string]command[C]{
		"serve": p.serve,
		"healthcheck": func(ctx context.Context, cfg C, stdout, _ io.Writer) error {
			return Healthcheck(ctx, p.Settings(cfg).AdminAddr, stdout)
		},
		commandConfig: func(_ context.Context, cfg C, stdout, _ io.Writer) error {
			return printConfig(cfg, stdout)
		},
	}
	for name, run := range map[string]func(context.Context, C, io.Writer) error{"migrate": p.Migrate, "topics": p.Topics} {
		if run != nil {
			all[name] = func(ctx context.Context, cfg C, stdout, _ io.Writer) error { return run(ctx, cfg, stdout) }
		}
	}
	return all
}

func (p Program[C]) serve(ctx context.Context, cfg C, _, stderr io.Writer) error {
	settings := p.Settings(cfg)
	log, err := NewLogger(stderr, settings.LogLevel, settings.LogFormat)
	if err != nil {
		return err
	}
	log = log.With("service", p.Name)
	log.Info("starting", "configuration", config.LogValue(cfg))
	StartTracing()
	return p.Serve(ctx, cfg, Host{Log: log})
}

func (p Program[C]) usage(out io.Writer) error {
	prepare := ""
	if p.Migrate != nil {
		prepare += "  migrate      bring the database to the schema of this build\n"
	}
	if p.Topics != nil {
		prepare += "  topics       create the Kafka topics of this service\n"
	}
	_, err := fmt.Fprintf(out, `Usage: %[1]s [command]

  serve        run the service (the default); the first SIGINT or SIGTERM drains it, the second ends it
%[2]s  healthcheck  ask the running service whether it is ready: exit code 0 or 1
  config       list the settings and what is in effect, secrets masked; problems go to stderr

All settings come from the environment. Exit codes: 0 done, 1 failed, 2 usage or configuration.
`, p.Name, prepare)
	return err
}

func printConfig(cfg any, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "VARIABLE\tVALUE\tDEFAULT\tLIMITS\tWHAT IT DOES")
	for _, s := range config.Describe(cfg) {
		fallback := s.Default
		if s.Required {
			fallback = "(required)"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Variable, s.Value, fallback, s.Limits, s.Doc)
	}
	return table.Flush()
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// ExitCode is that of wrong usage.
func (e *usageError) ExitCode() int { return ExitUsage }
