package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// DLQImport is "twinbox dlq import".
type DLQImport struct {
	Operator `embed:""`
	Change   `embed:""`

	File string `arg:"" help:"What was exported; - is standard input."`
}

// Run gives each line to the service that has its consumer.
func (c *DLQImport) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	from := to.in
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return usage(err.Error())
		}
		defer file.Close()
		from = file
	}
	owners, err := consumersOf(ctx, services)
	if err != nil {
		return err
	}
	sum, err := c.send(ctx, services, owners, from)
	what := effect{done: "Imported", would: "import at most", thing: "dead letter"}
	switch {
	case err != nil && sum.Count > 0 && c.Yes:
		return both(sum.write(to, c.Operator, what), &partialError{err})
	case err != nil:
		return err
	}
	return sum.write(to, c.Operator, what)
}

// consumersOf is which service has a consumer.
func consumersOf(ctx context.Context, services []*client.Service) (map[string]*client.Service, error) {
	answers, err := askWho(ctx, services)
	owners := map[string]*client.Service{}
	for _, a := range answers {
		for _, name := range a.value.Consumers {
			owners[name] = a.service
		}
	}
	return owners, err
}

// send streams the lines to all services at once, a file of any size. A service gets an empty line for each line that
// is another's, so that the numbers in its answer are those of the file.
func (c *DLQImport) send(
	ctx context.Context, services []*client.Service, owners map[string]*client.Service, from io.Reader,
) (effects, error) {
	readers, writers := map[*client.Service]*io.PipeReader{}, map[*client.Service]*io.PipeWriter{}
	for _, s := range services {
		readers[s], writers[s] = io.Pipe()
	}
	results, ended := make([]adminapi.Result, len(services)), make(chan error, len(services))
	all, ctx := errgroup.WithContext(ctx)
	for i, s := range services {
		all.Go(func() (err error) {
			results[i], err = c.sendTo(ctx, s, readers[s])
			ended <- err
			readers[s].CloseWithError(errOneFailed) // a writer that still has lines must not wait for ever
			return err
		})
	}
	own, err := route(from, owners, writers)
	if errors.Is(err, errOneFailed) {
		err = cmp.Or(<-ended, err) // that service says why, and before the others are cut off
	}
	for _, w := range writers {
		w.CloseWithError(err)
	}
	err = cmp.Or(err, all.Wait())
	var sum effects
	for i, s := range services {
		sum.add(s.Name, results[i])
	}
	sum.Failed += own.Failed
	sum.Errors = append(own.errors, sum.Errors...)
	return sum, err
}

var errOneFailed = errors.New("a service takes no more lines")

func (c *DLQImport) sendTo(ctx context.Context, s *client.Service, lines io.Reader) (adminapi.Result, error) {
	params := adminapi.ImportDeadLettersParams{By: c.who(), Reason: c.why(), DryRun: !c.Yes}
	return client.Stream(ctx, s, func(int64) {}, client.PostLines("/admin/v1/dead-letters/import", params, lines))
}

// losses are the lines that no service was given.
type losses struct {
	Failed int64
	errors []undone
}

func (l *losses) add(line int, code string) {
	l.Failed++
	if len(l.errors) < maxShown {
		l.errors = append(l.errors, undone{fmt.Sprintf("line %d", line), code, "no service was given it"})
	}
}

// route gives each line to its service and counts those that are no service's.
func route(
	from io.Reader, owners map[string]*client.Service, writers map[*client.Service]*io.PipeWriter,
) (losses, error) {
	var lost losses
	number := 0
	for line, err := range operate.Lines(from) {
		number++
		var owner *client.Service
		switch {
		case errors.Is(err, operate.ErrLineTooLong):
			lost.add(number, "line_too_long")
		case err != nil:
			return lost, fmt.Errorf("read import: %w", err)
		default:
			var reason string
			if owner, reason = ownerOf(line, owners); reason != "" {
				lost.add(number, reason)
			}
		}
		for s, w := range writers {
			text := []byte("\n")
			if s == owner {
				text = append(slices.Clip(line), '\n')
			}
			if _, err := w.Write(text); err != nil {
				return lost, fmt.Errorf("send line %d: %w: %w", number, errOneFailed, err)
			}
		}
	}
	return lost, nil
}

func ownerOf(line []byte, owners map[string]*client.Service) (owner *client.Service, reason string) {
	var of struct {
		Consumer string `json:"consumer"`
	}
	if len(line) == 0 {
		return nil, ""
	}
	if err := json.Unmarshal(line, &of); err != nil {
		return nil, "invalid_json"
	}
	if owner = owners[of.Consumer]; owner == nil {
		return nil, "unknown_consumer"
	}
	return owner, ""
}
