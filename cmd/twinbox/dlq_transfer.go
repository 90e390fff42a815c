package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/ops/admin/adminapi"
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

// Run writes the dead letters of one service after the other.
func (c *DLQExport) Run(ctx context.Context, to *streams) error {
	services, err := c.connect()
	if err != nil {
		return err
	}
	ids, services, err := parseIDs(c.IDs, services)
	if err != nil {
		return err
	}
	if c.Out == "" {
		_, err := c.export(ctx, ids, services, to)
		return err
	}
	file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // payloads are private
	if errors.Is(err, fs.ErrExist) {
		return refused("file_exists", "%s exists; an export does not write over it", c.Out)
	}
	if err != nil {
		return fmt.Errorf("open output: %w", err)
	}
	n, err := c.export(ctx, ids, services, file)
	if err = errors.Join(err, file.Close()); err != nil {
		if n == 0 { // nothing to keep, and the next export would not write over it
			err = errors.Join(err, os.Remove(c.Out))
		}
		return err
	}
	if c.JSON {
		to.document(map[string]any{"count": n, "file": c.Out})
		return nil
	}
	to.say("Exported %d dead letters to %s.", n, c.Out)
	return nil
}

func (c *DLQExport) export(
	ctx context.Context, ids map[string][]int64, services []*client.Service, out io.Writer,
) (sum int, err error) {
	for _, s := range services {
		body, err := s.Open(ctx, client.Post("/admin/v1/dead-letters/export", c.body(c.State, ids[s.Name])))
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
			return n, err
		}
		n++
	}
}

// DLQImport is "twinbox dlq import".
type DLQImport struct {
	Change `embed:""`

	File string `arg:"" help:"What was exported; - is standard input."`
}

// Run gives each line to the service that has its consumer. It reads the file once for what no service takes, and once
// for each service, which gets an empty line for each line that is another's: so the numbers in its answer are those of
// the file, and files of any size are sent.
func (c *DLQImport) Run(ctx context.Context, to *streams) error {
	services, err := c.Connection.connect()
	if err != nil {
		return err
	}
	file, err := c.open(to)
	if err != nil {
		return err
	}
	defer file.Close()
	answers, err := askWho(ctx, services)
	if err != nil {
		return err
	}
	owners := map[string]string{}
	for _, a := range answers {
		for _, consumer := range a.value.Consumers {
			owners[consumer] = a.service.Name
		}
	}
	var sum effects
	number := 0
	err = route(file, owners, func(_ []byte, owner, code string) error {
		if number++; code != "" {
			sum.fail(fmt.Sprintf("line %d", number), code, "no service was given it")
		}
		return nil
	})
	if err != nil {
		return err
	}
	what := effect{done: "Imported", would: "import at most", thing: "dead letter"}
	params := adminapi.ImportDeadLettersParams{By: c.By, Reason: c.Reason, DryRun: !c.Yes}
	return c.inTurn(ctx, to, services, what, sum,
		func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
			lines, out := io.Pipe()
			go func() {
				out.CloseWithError(route(file, owners, func(line []byte, owner, _ string) error {
					if owner != s.Name {
						line = nil
					}
					_, err := out.Write(append(line, '\n'))
					return err
				}))
			}()
			defer lines.Close() // a service that takes no more lines keeps none from the next one
			return client.Stream(ctx, s, progress, client.PostLines("/admin/v1/dead-letters/import", params, lines))
		})
}

// open opens the file. What can be read only once, such as standard input, is kept in one.
func (c *DLQImport) open(to *streams) (*os.File, error) {
	from, err := open(c.File, to)
	if err != nil {
		return nil, err
	}
	if file, is := from.(*os.File); is {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	defer from.Close()
	file, err := os.CreateTemp("", "twinbox-import-*.jsonl") // 0600
	if err == nil {
		_ = os.Remove(file.Name()) // it is there as long as it is open
		_, err = io.Copy(file, from)
	}
	if err != nil {
		return nil, fmt.Errorf("read import: %w", err)
	}
	return file, nil
}

// route reads the lines and tells of which service each is: none where the line is empty, or for the reason that the
// code names.
func route(file io.ReaderAt, owners map[string]string, each func(line []byte, owner, code string) error) error {
	for line, err := range operate.Lines(io.NewSectionReader(file, 0, math.MaxInt64)) {
		var of struct {
			Consumer string `json:"consumer"`
		}
		owner, code := "", ""
		switch {
		case errors.Is(err, operate.ErrLineTooLong):
			code = "line_too_long"
		case err != nil:
			return fmt.Errorf("read import: %w", err)
		case len(line) == 0:
		case json.Unmarshal(line, &of) != nil:
			code = "invalid_json"
		default:
			if owner = owners[of.Consumer]; owner == "" {
				code = "unknown_consumer"
			}
		}
		if err := each(line, owner, code); err != nil {
			return err
		}
	}
	return nil
}
