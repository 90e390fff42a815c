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

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// LetterChange is what changes many dead letters.
type LetterChange struct {
	Change       `embed:""`
	LetterFilter `embed:""`

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
	services, err := c.connect(ctx)
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
	LetterChange `embed:""`

	All   bool     `help:"All that wait." env:"-"`
	Limit positive `help:"This many of each service at most. Default: all that are picked." env:"-" placeholder:"N"`
	Rate  *rate    `help:"This many per second at most. Default: as fast as they go." env:"-" placeholder:"N"`
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
func (c *DLQReplay) Run(ctx context.Context, to *streams) error {
	what := effect{done: "Replayed", would: "replay", thing: "dead letter"}
	return c.apply(ctx, to, what, c.All, func(filter adminapi.DeadLetterFilter) client.Request {
		filter.Limit = set(int(c.Limit))
		return client.Post("/admin/v1/dead-letters/replay", adminapi.ReplayRequest{
			By: c.By, Reason: c.Reason, DryRun: !c.Yes, Filter: filter, All: set(c.All), Force: set(c.Force),
			AcceptGap: set(c.Gap), Rate: (*float64)(c.Rate),
		})
	})
}

// DLQDiscard is "twinbox dlq discard". There is no --all: events are given up by name.
type DLQDiscard struct {
	LetterChange `embed:""`
}

// Run discards in one service after the other.
func (c *DLQDiscard) Run(ctx context.Context, to *streams) error {
	what := effect{done: "Discarded", would: "discard", thing: "dead letter"}
	return c.apply(ctx, to, what, false, func(filter adminapi.DeadLetterFilter) client.Request {
		return client.Post("/admin/v1/dead-letters/discard", adminapi.DiscardRequest{
			By: c.By, Reason: c.Reason, DryRun: !c.Yes, Filter: filter,
		})
	})
}

// DLQEdit is "twinbox dlq edit".
type DLQEdit struct {
	Change `embed:""`

	ID      string   `arg:"" help:"The dead letter, such as customer/17."`
	Payload string   `help:"The new payload; - is standard input. Default: without --header, $VISUAL or $EDITOR is opened on the current one." env:"-" placeholder:"FILE"`
	Header  []string `help:"A header of the record, such as ce_id; replaces those of its name. May be repeated." sep:"none" env:"-" placeholder:"NAME=VALUE"`
	Editor  string   `help:"The editor." env:"VISUAL,EDITOR" hidden:""`
}

// Run edits one dead letter.
func (c *DLQEdit) Run(ctx context.Context, to *streams) error {
	request := adminapi.EditRequest{By: c.By, Reason: c.Reason, DryRun: !c.Yes}
	for _, header := range c.Header {
		name, value, found := strings.Cut(header, "=")
		if !found || name == "" {
			return usage(fmt.Sprintf("--header %q is not NAME=VALUE", header))
		}
		if request.Headers == nil {
			request.Headers = &[]adminapi.Header{}
		}
		*request.Headers = append(*request.Headers, adminapi.Header{Name: name, Value: []byte(value)})
	}
	services, err := c.connect(ctx)
	if err != nil {
		return err
	}
	s, detail, err := getLetter(ctx, services, c.ID, true)
	if err != nil {
		return err
	}
	what := effect{done: "Edited", would: "edit", thing: "dead letter"}
	var sum effects
	var kept string // the file that an editor wrote
	if c.Payload != "" || request.Headers == nil {
		before := current(detail.Letter)
		after, file, err := c.newPayload(ctx, to, before)
		switch {
		case err != nil:
			return err
		case bytes.Equal(before, after) && request.Headers == nil:
			if sum.add(s.Name, adminapi.Result{DryRun: !c.Yes}); to.json() {
				return sum.write(to, what)
			}
			to.say("The payload is what it was; nothing to do.")
			return nil
		case json.Valid(before) && !json.Valid(after):
			return usage("the new payload is not valid JSON, as the one before was" + keptIn(file))
		}
		request.Payload, kept = &after, file
	}
	result, err := client.Call[adminapi.Result](ctx, s,
		client.Post(fmt.Sprintf("/admin/v1/dead-letters/%d/edit", detail.Letter.Id), request))
	switch {
	case err != nil:
		return fmt.Errorf("%w%s", err, keptIn(kept))
	case kept != "" && c.Yes:
		_ = os.Remove(kept)
	case kept != "":
		what.after = "; the text is in " + kept + ", give it as --payload"
	}
	sum.add(s.Name, result)
	return sum.write(to, what)
}

// current is what a replay would take.
func current(l adminapi.DeadLetter) []byte {
	if l.EditedPayload != nil {
		return *l.EditedPayload
	}
	return []byte(textOf(l.Payload))
}

// maxPayload is far above what a broker takes.
const maxPayload = 1 << 20

// newPayload reads the given payload, or opens the operator's editor. Then it is in a file, too, so that a refusal or a
// dry run does not lose the text.
func (c *DLQEdit) newPayload(ctx context.Context, to *streams, before []byte) (after []byte, file string, err error) {
	if c.Payload == "" {
		return c.edit(ctx, to, before)
	}
	from, err := open(c.Payload, to)
	if err != nil {
		return nil, "", err
	}
	defer from.Close()
	after, err = io.ReadAll(io.LimitReader(from, maxPayload+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("read payload: %w", err)
	case len(after) > maxPayload:
		return nil, "", usage(fmt.Sprintf("the payload is longer than %d bytes", maxPayload))
	}
	return after, "", nil
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

func (c *DLQEdit) edit(ctx context.Context, to *streams, before []byte) (after []byte, file string, err error) {
	editor := strings.Fields(c.Editor)
	if len(editor) == 0 {
		return nil, "", usage("no editor: set VISUAL or EDITOR, or give --payload FILE")
	}
	temp, err := os.CreateTemp("", "twinbox-payload-*.json") // 0600
	if err != nil {
		return nil, "", fmt.Errorf("make file for the editor: %w", err)
	}
	_, err = temp.Write(before)
	if err = errors.Join(err, temp.Close()); err != nil {
		return nil, "", fmt.Errorf("write file for the editor: %w", err)
	}
	command := exec.CommandContext(ctx, editor[0], append(editor[1:], temp.Name())...)
	command.Stdin, command.Stdout, command.Stderr = to.in, to.err, to.err
	if err := command.Run(); err != nil {
		return nil, "", fmt.Errorf("run editor: %w%s", err, keptIn(temp.Name()))
	}
	if after, err = os.ReadFile(temp.Name()); err != nil {
		return nil, "", fmt.Errorf("read edited file: %w", err)
	}
	if !bytes.HasSuffix(before, []byte("\n")) {
		after = bytes.TrimSuffix(after, []byte("\n")) // which editors add
	}
	if bytes.Equal(before, after) {
		_ = os.Remove(temp.Name())
	}
	return after, temp.Name(), nil
}

func keptIn(file string) string {
	if file == "" {
		return ""
	}
	return "; the text is kept in " + file
}
