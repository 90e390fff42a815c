package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"example.com/twinbox/ops/admin/client"
)

// DLQExport is "twinbox dlq export".
type DLQExport struct {
	Connection   `embed:""`
	LetterFilter `embed:""`

	IDs   []string `arg:"" optional:"" name:"id" help:"Dead letters, such as customer/17. Default: all that the filters pick."`
	State string   `help:"In this state: waiting, replayed, discarded or all." enum:"waiting,replayed,discarded,all" default:"waiting" env:"-"`
	Out   string   `help:"A new file to write to. Default: standard output." short:"o" env:"-" placeholder:"FILE"`
	JSON  bool     `help:"With --out: answer with one JSON document, errors included." name:"json" env:"-"`
}

// existsError refuses to write over what is there.
type existsError struct{ file string }

func (e *existsError) Error() string   { return e.file + " exists; an export does not write over it" }
func (*existsError) ExitCode() int     { return exitRefused }
func (*existsError) ErrorCode() string { return "file_exists" }

// Run writes the dead letters of one service after the other.
func (c *DLQExport) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	picked, err := parseIDs(c.IDs, services)
	if err != nil {
		return err
	}
	if c.Out == "" {
		_, err := c.export(ctx, picked, picked.of(services), to.out)
		return err
	}
	file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // payloads are private
	if errors.Is(err, fs.ErrExist) {
		return &existsError{c.Out}
	}
	if err != nil {
		return fmt.Errorf("open output: %w", err)
	}
	n, err := c.export(ctx, picked, picked.of(services), file)
	if err = errors.Join(err, file.Close()); err != nil {
		if n == 0 { // nothing to keep, and the next export would not write over it
			err = errors.Join(err, os.Remove(c.Out))
		}
		return err
	}
	if c.JSON {
		return writeJSON(to.out, map[string]any{"count": n, "file": c.Out})
	}
	return to.say("Exported %d dead letters to %s.", n, c.Out)
}

func (c *DLQExport) export(ctx context.Context, picked pick, services []*client.Service, out io.Writer) (int, error) {
	sum := 0
	for _, s := range services {
		body, err := s.Open(ctx, client.Post("/admin/v1/dead-letters/export", c.body(c.State, picked.ids[s.Name])))
		if err != nil {
			return sum, err
		}
		n, err := copyLines(out, body)
		sum += n
		if err := errors.Join(err, body.Close()); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// copyLines passes whole lines on: an answer that is cut off leaves no half dead letter behind.
func copyLines(out io.Writer, body io.Reader) (n int, err error) {
	lines := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0:
			return n, nil
		case err != nil:
			return n, client.ErrCutOff
		}
		if _, err := out.Write(line); err != nil {
			return n, &outputError{err}
		}
		n++
	}
}
