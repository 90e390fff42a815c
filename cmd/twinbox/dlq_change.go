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
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// LetterChange is what changes many dead letters.
type LetterChange struct {
	Change
	LetterFilter

	IDs []string `arg:"" optional:"" name:"id" help:"Dead letters, such as customer/17."`
}

// apply makes the change that post asks for in one service after the other. It wants to be told of which dead letters:
// everything is only meant with --all.
func (c *LetterChange) apply(
	ctx context.Context, to *streams, what effect, all bool, post func(adminapi.DeadLetterFilter) client.Request,
) error {
	switch some := len(c.IDs) > 0 || c.given(); {
	case all && some:
		return usage("--all goes with no id and no filter")
	case !all && !some:
		return usage("say which dead letters: ids, filters or --all")
	}
	services, err := c.ProvideServices(ctx)
	if err != nil {
		return err
	}
	ids, services, err := parseIDs(c.IDs, services)
	if err != nil {
		return err
	}
	return c.inTurn(ctx, to, services, what, effects{},
		func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
			return client.Stream(ctx, s, progress, post(c.body("waiting", ids[s.Name])))
		})
}

// DLQReplay is "twinbox dlq replay".
type DLQReplay struct {
	LetterChange

	All   bool     `help:"All that wait." env:"-"`
	Limit positive `help:"This many of each service at most. Default: all that are picked." env:"-" placeholder:"N"`
	Rate  rate     `help:"This many per second at most. Default: as fast as they go." env:"-" placeholder:"N"`
	Gap   bool     `name:"accept-gap" help:"Also those that wait for an earlier version, and those parked behind them. That version is skipped if it comes after all." env:"-"`
	Force bool     `help:"Also those that are refused as too_old or replay_limit: a too old event may have been applied before. With --accept-gap also version_jump: all versions below it are skipped from then on." env:"-"`
}

// rate is a number of dead letters per second.
type rate float64

const maxRate = 1e6 // no handler is that fast

// UnmarshalText reads it.
func (r *rate) UnmarshalText(text []byte) error {
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(n > 0 && n <= maxRate) { // NaN is neither
		return errors.New("is a number above 0, at most 1000000, or left out")
	}
	*r = rate(n)
	return nil
}

// Run replays in one service after the other.
func (c *DLQReplay) Run(ctx context.Context, to *streams, what effect) error {
	return c.apply(ctx, to, what, c.All, func(filter adminapi.DeadLetterFilter) client.Request {
		filter.Limit = int(c.Limit)
		return client.Post("/admin/v1/dead-letters/replay", adminapi.ReplayRequest{
			By: c.By, Reason: c.Reason, DryRun: c.DryRun, Filter: filter, All: c.All, Force: c.Force,
			AcceptGap: c.Gap, Rate: float64(c.Rate),
		})
	})
}

// DLQDiscard is "twinbox dlq discard". There is no --all: events are given up by name.
type DLQDiscard struct{ LetterChange }

// Run discards in one service after the other.
func (c *DLQDiscard) Run(ctx context.Context, to *streams, what effect) error {
	return c.apply(ctx, to, what, false, func(filter adminapi.DeadLetterFilter) client.Request {
		return client.Post("/admin/v1/dead-letters/discard", adminapi.DiscardRequest{
			By: c.By, Reason: c.Reason, DryRun: c.DryRun, Filter: filter,
		})
	})
}

// DLQEdit is "twinbox dlq edit".
type DLQEdit struct {
	Change

	ID      string   `arg:"" help:"The dead letter, such as customer/17."`
	Payload string   `help:"The new payload; - is standard input. Default: without --header, $VISUAL or $EDITOR is opened on the current one." env:"-" placeholder:"FILE"`
	Header  []string `help:"A header of the record, such as ce_id; replaces those of its name. May be repeated." sep:"none" env:"-" placeholder:"NAME=VALUE"`
	Editor  string   `help:"The editor." env:"VISUAL,EDITOR" hidden:""`
}

// Run edits one dead letter.
func (c *DLQEdit) Run(ctx context.Context, to *streams, what effect) error {
	headers, err := c.headers()
	if err != nil {
		return err
	}
	services, err := c.ProvideServices(ctx)
	if err != nil {
		return err
	}
	s, detail, err := getLetter(ctx, services, c.ID, true)
	if err != nil {
		return err
	}
	request := adminapi.EditRequest{By: c.By, Reason: c.Reason, DryRun: c.DryRun, Headers: headers}
	send := func(text []byte) error {
		request.Payload = text
		return c.send(ctx, to, s, detail.Letter, request, what)
	}
	switch {
	case c.Payload == "" && headers == nil:
		return c.openEditor(ctx, to, current(detail.Letter), send)
	case c.Payload == "":
		return send(nil)
	}
	text, err := readPayload(c.Payload, to)
	if err != nil {
		return err
	}
	return send(text)
}

func (c *DLQEdit) headers() (headers []adminapi.Header, err error) {
	for _, header := range c.Header {
		name, value, found := strings.Cut(header, "=")
		if !found || name == "" {
			return nil, usage(fmt.Sprintf("--header %q is not NAME=VALUE", header))
		}
		headers = append(headers, adminapi.Header{Name: name, Value: []byte(value)})
	}
	return headers, nil
}

// send asks the service for the edit, unless there is nothing to do.
func (c *DLQEdit) send(
	ctx context.Context, to *streams, s *client.Service, l adminapi.DeadLetter, request adminapi.EditRequest, what effect,
) error {
	result := adminapi.Result{DryRun: c.DryRun}
	var err error
	before := current(l)
	switch after := request.Payload; {
	case after != nil && bytes.Equal(before, after) && request.Headers == nil:
		to.warn("the payload is what it was; nothing to do")
	case after != nil && json.Valid(before) && !json.Valid(after):
		return usage("the new payload is not valid JSON, as the one before was")
	default:
		result, err = client.Call[adminapi.Result](ctx, s,
			client.Post(fmt.Sprintf("/admin/v1/dead-letters/%d/edit", l.ID), request))
		if err != nil {
			return err
		}
	}
	var sum effects
	sum.add(s.Name, result)
	return sum.write(to, what)
}

// current is what a replay would take.
func current(l adminapi.DeadLetter) []byte {
	if l.EditedPayload != nil {
		return l.EditedPayload
	}
	return l.Payload
}

// maxPayload is far above what a broker takes.
const maxPayload = 1 << 20

func readPayload(name string, to *streams) ([]byte, error) {
	from, err := open(name, to)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	text, err := io.ReadAll(io.LimitReader(from, maxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("read payload: %w", err)
	}
	switch {
	case len(text) > maxPayload:
		return nil, usage(fmt.Sprintf("the payload is longer than %d bytes", maxPayload))
	case len(text) == 0: // a request cannot say it
		return nil, usage("the payload is empty")
	}
	return text, nil
}

// open opens a file that is named on the command line; - is standard input.
func open(name string, to *streams) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(to.in), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, usage(err.Error())
	}
	return file, nil
}

// openEditor opens the operator's editor on a payload. A refusal or a dry run does not lose what was typed.
func (c *DLQEdit) openEditor(
	ctx context.Context, to *streams, before []byte, send func(text []byte) error,
) (err error) {
	editor := strings.Fields(c.Editor)
	if len(editor) == 0 {
		return usage("no editor: set VISUAL or EDITOR, or give --payload FILE")
	}
	file, err := os.CreateTemp("", "twinbox-payload-*.json") // 0600
	if err != nil {
		return fmt.Errorf("make file for the editor: %w", err)
	}
	text := before
	defer func() {
		if err == nil && (c.Yes || bytes.Equal(before, text)) {
			_ = os.Remove(file.Name())
			return
		}
		to.warn("the text is kept in %s", file.Name())
	}()
	_, err = file.Write(before)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write file for the editor: %w", err)
	}
	command := exec.CommandContext(ctx, editor[0], append(editor[1:], file.Name())...)
	command.Stdin, command.Stdout, command.Stderr = to.in, to.err, to.err
	if err := command.Run(); err != nil {
		return fmt.Errorf("run editor: %w", err)
	}
	if text, err = os.ReadFile(file.Name()); err != nil {
		return fmt.Errorf("read edited file: %w", err)
	}
	if !bytes.HasSuffix(before, []byte("\n")) {
		text = bytes.TrimSuffix(text, []byte("\n")) // which editors add
	}
	return send(text)
}

// DLQExport is "twinbox dlq export".
type DLQExport struct {
	Connection
	LetterFilter

	IDs   []string `arg:"" optional:"" name:"id" help:"Dead letters, such as customer/17. Default: all that the filters pick."`
	State string   `help:"In this state: waiting, replayed, discarded or all." enum:"waiting,replayed,discarded,all" default:"waiting" env:"-"`
	Out   string   `help:"A new file to write to. Default: standard output." short:"o" env:"-" placeholder:"FILE"`
	JSON  bool     `help:"With --out: answer with one JSON document, errors included." name:"json" env:"-"`
}

// Run writes the dead letters of one service after the other.
func (c *DLQExport) Run(ctx context.Context, to *streams, services []*client.Service) error {
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
	Change

	File string `arg:"" help:"What was exported; - is standard input."`
}

// Run gives each line to the service that has its consumer.
func (c *DLQImport) Run(ctx context.Context, to *streams, what effect) error {
	services, err := c.Connection.ProvideServices()
	if err != nil {
		return err
	}
	from, err := open(c.File, to)
	if err != nil {
		return err
	}
	defer from.Close()
	answers, err := askWho(ctx, services)
	if err != nil {
		return err
	}
	parts, owners := map[string]*os.File{}, map[string]string{}
	for _, a := range answers {
		part, err := os.CreateTemp("", "twinbox-import-*.jsonl") // 0600
		if err != nil {
			return fmt.Errorf("make file for %s: %w", a.Service, err)
		}
		defer os.Remove(part.Name())
		defer part.Close()
		parts[a.Service] = part
		for _, consumer := range a.Value.Consumers {
			owners[consumer] = a.Service
		}
	}
	sum, err := share(from, owners, parts)
	if err != nil {
		return fmt.Errorf("read import: %w", err)
	}
	params := adminapi.ImportDeadLettersParams{By: c.By, Reason: c.Reason, DryRun: c.DryRun}
	return c.inTurn(ctx, to, services, what, sum,
		func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
			lines := io.NewSectionReader(parts[s.Name], 0, math.MaxInt64)
			return client.Stream(ctx, s, progress, client.PostLines("/admin/v1/dead-letters/import", params, lines))
		})
}

// share writes each line to its service's part of a file of any size, and counts those that are no service's. The
// others get an empty line for it, so that the numbers in a service's answer are those of the file.
func share(from io.Reader, owners map[string]string, parts map[string]*os.File) (lost effects, err error) {
	number := 0
	for line, err := range operate.Lines(from) {
		number++
		var of struct {
			Consumer string `json:"consumer"`
		}
		owner, code := "", ""
		switch {
		case errors.Is(err, operate.ErrLineTooLong):
			code = "line_too_long"
		case err != nil:
			return lost, err
		case len(line) == 0:
		case json.Unmarshal(line, &of) != nil:
			code = "invalid_json"
		default:
			if owner = owners[of.Consumer]; owner == "" {
				code = "unknown_consumer"
			}
		}
		if code != "" {
			lost.fail(fmt.Sprintf("line %d", number), code, "no service was given it")
		}
		for service, part := range parts {
			text := []byte("\n")
			if service == owner {
				text = append(slices.Clip(line), '\n')
			}
			if _, err := part.Write(text); err != nil {
				return lost, err
			}
		}
	}
	return lost, nil
}
