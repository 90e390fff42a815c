package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
)

// Answer has the flags of every command's output.
type Answer struct {
	JSON      bool   `help:"Answer with one JSON document, errors included; the same as -o json." name:"json" env:"-"`
	Output    string `help:"Form of the answer: table, wide (all columns, and times instead of ages) or json." short:"o" enum:"table,wide,json" default:"table" env:"-"`
	NoHeaders bool   `help:"Tables without their headings." env:"-"`
}

// Writes to streams are the result; stderr is for people.
type streams struct {
	*Answer
	out, err io.Writer
	broken   error // of the first failed Write
}

// Write keeps its error, which ends the command: only long loops must check it.
func (s *streams) Write(p []byte) (int, error) {
	if s.broken != nil {
		return 0, s.broken
	}
	n, err := s.out.Write(p)
	if err != nil {
		s.broken = fmt.Errorf("write output: %w", err)
	}
	return n, s.broken
}

func (s *streams) say(format string, args ...any) { _, _ = fmt.Fprintf(s, format+"\n", args...) }

func (s *streams) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(s.err, "twinbox: "+format+"\n", args...)
}

func (s *streams) json() bool { return s.JSON || s.Output == "json" }

func (s *streams) document(document any) {
	encoder := json.NewEncoder(s)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(document) // see Write
}

// Tables without a row are left out.
func (s *streams) show(tables ...table) {
	var texts []string
	for _, t := range tables {
		lines := t.lines(s.Output == "wide")
		if s.NoHeaders {
			lines = lines[1:]
		}
		var text strings.Builder
		aligned := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, line := range lines {
			_, _ = fmt.Fprintln(aligned, strings.Join(line, "\t"))
		}
		_ = aligned.Flush()
		if len(t.rows) > 0 {
			texts = append(texts, text.String())
		}
	}
	_, _ = io.WriteString(s, strings.Join(texts, "\n"))
}

func (s *streams) isTerminal() bool {
	file, is := s.out.(*os.File)
	if !is || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// again ends with the context or when the result cannot be written. It reports other failures and continues.
func (s *streams) again(ctx context.Context, every time.Duration, do func() error) error {
	if every < 100*time.Millisecond {
		return usage("--every is below 100ms")
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := do()
		switch code := exitCode(err); {
		case ctx.Err() != nil || s.broken != nil:
			return nil
		case code == service.ExitUsage || code == exitRefused: // it will not become better
			return err
		case err != nil:
			s.warn("%v", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const progressEvery = 5 * time.Second

// A total of 0 is unknown.
func (s *streams) progress(name string) func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		switch {
		case time.Since(last) < progressEvery:
			return
		case total > 0:
			_, _ = fmt.Fprintf(s.err, "%s: %d of %d done\n", name, done, total)
		default:
			_, _ = fmt.Fprintf(s.err, "%s: %d done\n", name, done)
		}
		last = time.Now()
	}
}

// The exit codes next to those of package service.
const (
	exitNotFound = 3
	exitRefused  = 4
	exitPartial  = 5
)

// ending is an error with the exit code and a stable name.
type ending struct {
	error
	exit     int
	code     string
	answered bool // the result is on stdout
}

func (e *ending) Unwrap() error { return e.error }

func usage(text string) error {
	return &ending{error: errors.New(text), exit: service.ExitUsage, code: "usage"}
}

func notFound(text string) error {
	return &ending{error: errors.New(text), exit: exitNotFound, code: "not_found"}
}

func partial(err error) error {
	if err == nil {
		return nil
	}
	return &ending{error: err, exit: exitPartial, code: "partial", answered: true}
}

// exitOf has the statuses that are no failures of the service.
var exitOf = map[int]int{
	http.StatusNotFound: exitNotFound, http.StatusBadRequest: service.ExitUsage,
	http.StatusUnprocessableEntity: service.ExitUsage, http.StatusUnauthorized: exitRefused,
	http.StatusForbidden: exitRefused, http.StatusConflict: exitRefused, http.StatusGone: exitRefused,
	http.StatusMisdirectedRequest: exitRefused,
}

func endingOf(err error) *ending {
	if ended, is := errors.AsType[*ending](err); is {
		return ended
	}
	end := &ending{error: err, exit: service.ExitFailure, code: "failed"}
	problem, isProblem := errors.AsType[*client.ProblemError](err)
	_, isUnreachable := errors.AsType[*client.UnreachableError](err)
	switch {
	case err == nil:
		end.exit = service.ExitOK
	case errors.Is(err, client.ErrCutOff):
		end.exit = exitPartial
	case isProblem:
		end.exit, end.code = cmp.Or(exitOf[problem.Problem.Status], end.exit), problem.Problem.Code
	case isUnreachable:
		end.code = "unreachable"
	}
	return end
}

func exitCode(err error) int { return endingOf(err).exit }

// A program that asked for JSON gets one document. A closed pipe, as with "| head", is no failure.
func (s *streams) report(args []string, err error) int {
	switch {
	case s.broken != nil && !errors.Is(s.broken, syscall.EPIPE):
		err = s.broken
	case s.broken != nil && errors.Is(err, s.broken):
		err = nil
	}
	if err == nil {
		return service.ExitOK
	}
	s.warn("%v", err)
	end := endingOf(err)
	if askedForJSON.MatchString(strings.Join(args, "\n")) && !end.answered {
		s.document(map[string]any{"error": map[string]any{"code": end.code, "message": err.Error(), "exit": end.exit}})
	}
	return end.exit
}

// It works for a command line that cannot be parsed, too.
var askedForJSON = regexp.MustCompile(`(?m)^(--json|(-o|--output)[=\n]?json)$`)
