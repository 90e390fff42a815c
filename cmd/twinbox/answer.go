package main

import (
	"context"
	"os"
	"slices"
	"time"

	"example.com/twinbox/frame/service"
)

// Answer is how a command answers.
type Answer struct {
	JSON      bool   `help:"Answer with one JSON document, errors included; the same as -o json." name:"json" env:"-"`
	Output    string `help:"Form of the answer: table, wide (a table of which nothing is left out or cut) or json." short:"o" enum:"table,wide,json" default:"table" env:"-"`
	NoHeaders bool   `help:"Tables without their headings." env:"-"`
}

func (a *Answer) json() bool { return a.JSON || a.Output == "json" }

// show writes a table for the terminal.
func (a *Answer) show(to streams, t *table) error {
	t.bare = a.NoHeaders
	width := to.width()
	if a.Output == "wide" {
		width = unknownWide
	}
	return t.write(to.out, width)
}

// wantsJSON says whether a command line asked for JSON, also one that cannot be parsed.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		if slices.Contains([]string{"--json", "-ojson", "-o=json", "--output=json"}, arg) {
			return true
		}
		if (arg == "-o" || arg == "--output") && i+1 < len(args) && args[i+1] == "json" {
			return true
		}
	}
	return false
}

// Watch repeats an answer.
type Watch struct {
	Watch bool          `help:"Show it again and again, until Ctrl-C." short:"w" env:"-"`
	Every time.Duration `help:"How often." default:"2s" env:"-" placeholder:"DURATION"`
}

// repeat shows it once, or with --watch until the context ends: on a terminal in the place of the one before. A service
// that is away for a while is said so, and does not end it.
func (w *Watch) repeat(ctx context.Context, to streams, show func() error) error {
	if !w.Watch {
		return show()
	}
	if w.Every < 100*time.Millisecond {
		return usage("--every is below 100ms")
	}
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		if to.onTerminal() {
			if err := to.say("\x1b[H\x1b[2J%s", moment(time.Now())); err != nil {
				return err
			}
		}
		err := show()
		switch code := exitCode(err); {
		case ctx.Err() != nil:
			return nil
		case code == service.ExitUsage || code == exitRefused || code == 0 && err != nil: // it will not become better
			return err
		case err != nil:
			to.warn(err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// onTerminal says whether a person looks at the output on a screen that can be cleared.
func (s streams) onTerminal() bool {
	return isTerminal(s.out) && os.Getenv("TERM") != "dumb"
}

// checkLimit refuses a number of things that is none.
func checkLimit(limit *int, without string) error {
	if limit != nil && (*limit < 1 || *limit > maxLimit) {
		return usage("--limit is within 1 and 1000; " + without)
	}
	return nil
}

const (
	maxLimit     = 1000
	defaultLimit = 100
)
