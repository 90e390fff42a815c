package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// LetterChange changes many dead letters.
type LetterChange struct {
	Change

	Filter LetterFilter `embed:"" json:"filter"`
	IDs    []string     `arg:"" optional:"" name:"id" json:"-" help:"Dead letters, such as customer/17." names:"dlq list --each: ref"`
}

// Without a filter, apply requires --all.
func (c *LetterChange) apply(ctx context.Context, to *streams, what effect, at *Connection, all bool, body any) error {
	switch some := len(c.IDs) > 0 || c.Filter.isSet(); {
	case all && some:
		return usage("--all goes with no id and no filter")
	case !all && !some:
		return usage("say which dead letters: ids, filters or --all")
	}
	services, err := c.ProvideServices(ctx, at)
	if err != nil {
		return err
	}
	ids, services, err := parseIDs(c.IDs, services)
	if err != nil {
		return err
	}
	asked, err := values(body)
	if err != nil {
		return err
	}
	return c.inTurn(ctx, to, services, what, func(s *client.Service) client.Request {
		filter := asked["filter"].(map[string]any)
		filter["state"] = "waiting"
		if ids != nil {
			filter["ids"] = ids[s.Name]
		}
		if limit := asked["limit"]; limit != nil {
			filter["limit"] = limit
		}
		request := maps.Clone(asked)
		delete(request, "limit")
		return client.Post(what.post, request)
	})
}

// DLQReplay is "twinbox dlq replay".
type DLQReplay struct {
	LetterChange

	All   bool     `json:"all,omitempty" help:"All that wait." env:"-"`
	Limit *int     `json:"limit,omitempty" help:"This many of each service at most. Default: all that are picked." env:"-" placeholder:"N"`
	Rate  *float64 `json:"rate,omitempty" help:"This many per second at most. Default: as fast as they go." env:"-" placeholder:"N"`
	Gap   bool     `json:"accept_gap,omitempty" name:"accept-gap" help:"Also those whose version is too high (version_gap, version_jump). The versions below are skipped if they come after all." env:"-"`
	Force bool     `json:"force,omitempty" help:"Also those that are refused as too_old, which may have been applied before." env:"-"`
}

// Run replays in one service after the other.
func (c *DLQReplay) Run(ctx context.Context, to *streams, what effect, at *Connection) error {
	return c.apply(ctx, to, what, at, c.All, c)
}

// DLQDiscard is "twinbox dlq discard". It has no --all: you name the events that you give up.
type DLQDiscard struct{ LetterChange }

// Run discards in one service after the other.
func (c *DLQDiscard) Run(ctx context.Context, to *streams, what effect, at *Connection) error {
	return c.apply(ctx, to, what, at, false, c)
}

// DLQEdit is "twinbox dlq edit".
type DLQEdit struct {
	Change

	ID       string    `arg:"" help:"The dead letter, such as customer/17." names:"dlq list --each: ref"`
	Payload  string    `help:"The new payload; - is standard input. Default: without --header, $VISUAL or $EDITOR is opened on the current one." env:"-" placeholder:"FILE"`
	Header   []string  `help:"A header of the record, such as ce_id; replaces those of its name. May be repeated." sep:"none" env:"-" placeholder:"NAME=VALUE"`
	EditedAt time.Time `help:"The edit that this one follows, where the dead letter is edited already; the refusal names it. The editor follows the one that it shows." env:"-" placeholder:"TIME"`
	Editor   string    `help:"The editor." env:"VISUAL,EDITOR" hidden:""`
}

// Run edits one dead letter.
func (c *DLQEdit) Run(ctx context.Context, to *streams, services []*client.Service, what effect) error {
	edit := adminapi.EditRequest{By: c.By, Reason: c.Reason, DryRun: c.DryRun, EditedAt: c.EditedAt}
	for _, header := range c.Header {
		name, value, found := strings.Cut(header, "=")
		if !found || name == "" {
			return usage(fmt.Sprintf("--header %q is not NAME=VALUE", header))
		}
		edit.Headers = append(edit.Headers, adminapi.Header{Name: name, Value: []byte(value)})
	}
	s, detail, err := getLetter(ctx, services, c.ID, true)
	if err != nil {
		return err
	}
	before, file := detail.Letter.Payload, ""
	if detail.Letter.EditedPayload != nil {
		before = detail.Letter.EditedPayload
	}
	switch {
	case c.Payload != "":
		edit.Payload, err = readPayload(c.Payload, to)
	case edit.Headers == nil:
		edit.EditedAt = detail.Letter.EditedAt
		edit.Payload, file, err = c.openEditor(ctx, to, before)
	}
	if err == nil {
		err = c.send(ctx, to, s, detail.Letter.ID, before, edit, what)
	}
	switch {
	case file == "":
	case err == nil && (c.Yes || bytes.Equal(before, edit.Payload)):
		_ = os.Remove(file)
	default:
		to.warn("the text is kept in %s", file)
	}
	return err
}

func (c *DLQEdit) send(
	ctx context.Context, to *streams, s *client.Service, id int64, before []byte, edit adminapi.EditRequest, what effect,
) (err error) {
	result := adminapi.Result{DryRun: c.DryRun}
	switch after := edit.Payload; {
	case after != nil && bytes.Equal(before, after) && edit.Headers == nil:
		to.warn("the payload is what it was; nothing to do")
	case after != nil && json.Valid(before) && !json.Valid(after):
		return usage("the new payload is not valid JSON, as the one before was")
	default:
		result, err = client.Call[adminapi.Result](ctx, s,
			client.Post(fmt.Sprintf("/admin/v1/dead-letters/%d/edit", id), edit))
	}
	if err != nil {
		return err
	}
	var sum effects
	sum.add(s.Name, result)
	return sum.write(to, what)
}

// - is standard input.
func readPayload(name string, to *streams) (text []byte, err error) {
	if name == "-" {
		text, err = io.ReadAll(to.in)
	} else {
		text, err = os.ReadFile(name)
	}
	if err == nil && len(text) == 0 { // a request cannot say it
		err = errors.New("the payload is empty")
	}
	if err != nil {
		return nil, usage(err.Error())
	}
	return text, nil
}

// The file stays, so that an operator's text is not lost.
func (c *DLQEdit) openEditor(ctx context.Context, to *streams, before []byte) (text []byte, name string, err error) {
	editor := strings.Fields(c.Editor)
	if len(editor) == 0 {
		return nil, "", usage("no editor: set VISUAL or EDITOR, or give --payload FILE")
	}
	file, err := os.CreateTemp("", "twinbox-payload-*.json") // 0600
	if err != nil {
		return nil, "", fmt.Errorf("make file for the editor: %w", err)
	}
	_, err = file.Write(before)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, file.Name(), fmt.Errorf("write file for the editor: %w", err)
	}
	command := exec.CommandContext(ctx, editor[0], append(editor[1:], file.Name())...)
	command.Stdin, command.Stdout, command.Stderr = to.in, to.err, to.err
	if err := command.Run(); err != nil {
		return nil, file.Name(), fmt.Errorf("run editor: %w", err)
	}
	if text, err = os.ReadFile(file.Name()); err != nil {
		return nil, file.Name(), fmt.Errorf("read edited file: %w", err)
	}
	if !bytes.HasSuffix(before, []byte("\n")) {
		text = bytes.TrimSuffix(text, []byte("\n")) // which editors add
	}
	return text, file.Name(), nil
}
