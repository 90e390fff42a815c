package main

import (
	"fmt"
	"io"
	"time"
)

// streams are where a command reads and writes: stdout is for results, stderr for people.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func (s streams) width() int { return widthOf(s.out) }

// say writes a line of the result.
func (s streams) say(format string, args ...any) error {
	if _, err := fmt.Fprintf(s.out, format+"\n", args...); err != nil {
		return &outputError{err}
	}
	return nil
}

// warn tells people what the result does not say.
func (s streams) warn(text string) { _, _ = fmt.Fprintln(s.err, "twinbox:", text) }

// progress is a line about what is done so far, on stderr: on a terminal it is written over, elsewhere it is a new line
// every five seconds.
type progress struct {
	out      io.Writer
	name     string
	terminal bool
	shown    bool
	last     time.Time
}

const progressLineEvery = 5 * time.Second

func (s streams) progress(name string) *progress {
	return &progress{out: s.err, name: name, terminal: isTerminal(s.err), last: time.Now()}
}

func (p *progress) show(done int64) {
	switch {
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r%s: %d done", p.name, done)
		p.shown = true
	case time.Since(p.last) >= progressLineEvery:
		p.last = time.Now()
		_, _ = fmt.Fprintf(p.out, "%s: %d done\n", p.name, done)
	}
}

func (p *progress) end() {
	if p.shown {
		_, _ = fmt.Fprintln(p.out)
	}
}
