// Package service is the process around a service: commands ([Program]), a logger ([NewLogger]), an admin listener
// ([Admin]) and supervised tasks ([Group]).
package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"example.com/twinbox/internal/config"
)

type Host struct {
	Log *slog.Logger

	// Ready is called once, when the listeners are open. Optional.
	Ready func(Listeners)
}

// Listeners are addresses, to listen on or bound. API may be empty.
type Listeners struct{ API, Admin string }

// Announce logs the addresses and calls Ready. A service calls it once.
func (h Host) Announce(at Listeners) {
	h.Log.Info("listening", "api", at.API, "admin", at.Admin)
	if h.Ready != nil {
		h.Ready(at)
	}
}

// SignalContext returns a context that the first SIGINT or SIGTERM cancels. A second one ends the process.
func SignalContext(parent context.Context) context.Context {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// StartTracing gives every request a trace, its caller's or a new one. Call it once, before a server starts.
func StartTracing() {
	otel.SetTracerProvider(sdktrace.NewTracerProvider())
	otel.SetTextMapPropagator(propagation.TraceContext{})
}

// Program is a service's command line. Only its command config works with a wrong configuration.
type Program[C any] struct {
	Name     string
	Settings func(cfg C) Settings

	Serve func(ctx context.Context, cfg C, host Host) error

	Commands []Command[C] // the service's own; optional
}

type Command[C any] struct {
	Name, What string
	Run        func(ctx context.Context, cfg C, out io.Writer) error
}

type Settings struct{ AdminAddr, LogLevel, LogFormat string }

const commandServe, commandHealthcheck, commandConfig = "serve", "healthcheck", "config"

const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2 // wrong command line or configuration
)

// Run returns the exit code. Results go to stdout; logs and errors to stderr.
func (p Program[C]) Run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	err := p.run(ctx, args, environ, stdout, stderr)
	if err == nil {
		return ExitOK
	}
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	var coded interface{ ExitCode() int }
	// Container runtimes reserve 2 for themselves.
	if errors.As(err, &coded) && !slices.Equal(args, []string{commandHealthcheck}) {
		return coded.ExitCode()
	}
	return ExitFailure
}

func (p Program[C]) run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	name, commands := commandServe, p.commands()
	if len(args) > 0 {
		name = args[0]
	}
	i := slices.IndexFunc(commands, func(c Command[C]) bool { return c.Name == name })
	switch {
	case name == "help" || name == "-h" || name == "--help":
		return p.usage(stdout, commands)
	case len(args) > 1:
		return Refuse(fmt.Errorf("%s takes no arguments; %s help lists the commands", name, p.Name))
	case i < 0:
		return Refuse(fmt.Errorf("unknown command %q; %s help lists the commands", name, p.Name))
	}
	var cfg C
	err := config.Load(environ, &cfg)
	switch {
	case name == commandConfig:
		return errors.Join(err, printConfig(cfg, stdout))
	case err != nil:
		return err
	case name == commandServe:
		return p.serve(ctx, cfg, environ, stderr)
	case name == commandHealthcheck:
		return Healthcheck(ctx, p.Settings(cfg).AdminAddr, stdout)
	}
	return commands[i].Run(ctx, cfg, stdout)
}

// run carries out the commands without a function.
func (p Program[C]) commands() []Command[C] {
	return slices.Concat([]Command[C]{{
		Name: commandServe, What: "run the service (the default); the first SIGINT or SIGTERM drains it, the second ends it",
	}}, p.Commands, []Command[C]{
		{Name: commandHealthcheck, What: "ask the running service whether it is ready: exit code 0 or 1"},
		{Name: commandConfig, What: "list the settings and what is in effect, secrets masked; problems go to stderr"},
	})
}

func (p Program[C]) serve(ctx context.Context, cfg C, environ []string, stderr io.Writer) error {
	settings := p.Settings(cfg)
	log := NewLogger(stderr, settings.LogLevel, settings.LogFormat).With("service", p.Name)
	log.Info("starting", "configuration", config.LogValue(cfg))
	for variable, instead := range config.Retired(environ) {
		log.Warn("a variable that is set is no longer read", "variable", variable, "reason", instead)
	}
	StartTracing()
	return p.Serve(ctx, cfg, Host{Log: log})
}

func (p Program[C]) usage(out io.Writer, commands []Command[C]) error {
	var list strings.Builder
	for _, c := range commands {
		_, _ = fmt.Fprintf(&list, "  %-11s  %s\n", c.Name, c.What)
	}
	_, err := fmt.Fprintf(out, `Usage: %s [command]

%s
All settings come from the environment. Exit codes: 0 done, 1 failed, 2 usage or configuration.
`, p.Name, &list)
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

// Refuse gives an error the exit code of wrong usage.
func Refuse(err error) error { return refused{err} }

type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

func (refused) ExitCode() int { return ExitUsage }

// Healthcheck asks the admin listener at addr, prints the checks, and returns an error if the service is not ready.
func Healthcheck(ctx context.Context, addr string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", addr, err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask admin listener: %w", err)
	}
	defer response.Body.Close()
	var report Readiness
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&report); err != nil {
		return fmt.Errorf("read readiness: status %d: %w", response.StatusCode, err)
	}
	_, _ = fmt.Fprintln(out, report.Status)
	for _, c := range report.Checks {
		_, _ = fmt.Fprintf(out, "  %-8s %s %s\n", c.Status, c.Name, c.Reason)
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("not ready")
	}
	return nil
}
