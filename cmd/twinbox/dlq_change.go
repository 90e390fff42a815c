package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

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
	c.warnOfName(ctx, to, services)
	return c.inTurn(ctx, to, services, what,
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
	Gap   bool     `name:"accept-gap" help:"Also those whose version is too high (version_gap, version_jump). The versions below are skipped if they come after all." env:"-"`
	Force bool     `help:"Also those that are refused as too_old, which may have been applied before." env:"-"`
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
