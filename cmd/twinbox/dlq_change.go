package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// LetterChange changes many dead letters.
type LetterChange struct {
	Change

	Filter LetterFilter `embed:"" json:"filter"`
	IDs    []string     `arg:"" optional:"" name:"id" json:"-" help:"Dead letters, such as customer/17." names:"dlq list --each: ref"`
}

func (c *LetterChange) picks() bool { return len(c.IDs) > 0 || c.Filter.isSet() }

// Run changes them in one service after the other. A discard has no --all: you name the events that you give up.
func (c *LetterChange) Run(ctx context.Context, command *kong.Context, to *streams, services []*client.Service) error {
	body := command.Selected().Target.Addr().Interface()
	if !c.picks() && !values(body).isSet("all") {
		return usage("name the dead letters, or give a condition such as --code; replay also takes --all")
	}
	ids := map[string][]int64{}
	for _, name := range c.IDs {
		s, id, err := parseID(name, services)
		if err != nil {
			return err
		}
		if !slices.Contains(ids[s.Name], id) {
			ids[s.Name] = append(ids[s.Name], id)
		}
	}
	if len(ids) > 0 {
		services = slices.DeleteFunc(services, func(s *client.Service) bool { return ids[s.Name] == nil })
	}
	return c.apply(ctx, to, services, func(s *client.Service) any {
		asked := values(body)
		filter := asked.object("filter")
		filter["state"] = "waiting"
		if len(ids) > 0 {
			filter["ids"] = ids[s.Name]
		}
		if limit := asked["limit"]; limit != nil {
			filter["limit"] = limit
			delete(asked, "limit")
		}
		return asked
	})
}

type dlqReplay struct {
	LetterChange

	All   bool     `json:"all,omitempty" help:"All that wait." env:"-"`
	Limit *int     `json:"limit,omitempty" help:"This many of each service at most. Default: all that are picked." env:"-" placeholder:"N"`
	Rate  *float64 `json:"rate,omitempty" help:"This many per second at most. Default: as fast as they go." env:"-" placeholder:"N"`
	Gap   bool     `json:"accept_gap,omitempty" name:"accept-gap" help:"Also those whose version is too high (version_gap, version_jump). The versions below are skipped if they come after all." env:"-"`
	Force bool     `json:"force,omitempty" help:"Also those that are refused as too_old, which may have been applied before." env:"-"`
}

func (c *dlqReplay) AfterApply() error {
	switch {
	case c.All && c.picks():
		return usage("--all goes with no id and no filter")
	case c.Rate != nil && (math.IsNaN(*c.Rate) || math.IsInf(*c.Rate, 0)): // JSON has no such numbers
		return usage(fmt.Sprintf("--rate %v is no number", *c.Rate))
	}
	return nil
}

type dlqEdit struct {
	Change

	ID       string            `arg:"" json:"-" help:"The dead letter, such as customer/17." names:"dlq list --each: ref"`
	Payload  []byte            `json:"payload,omitempty" type:"filecontent" help:"The new payload; - is standard input. Default: without --header, $VISUAL or $EDITOR is opened on the current one." env:"-" placeholder:"FILE"`
	Header   []string          `json:"-" help:"A header of the record, such as ce_id; replaces those of its name. May be repeated." sep:"none" env:"-" placeholder:"NAME=VALUE"`
	Headers  []adminapi.Header `json:"headers,omitempty" kong:"-"`
	Letter   int64             `json:"id" kong:"-"`
	EditedAt time.Time         `json:"edited_at,omitzero" help:"The edit that this one follows, where the dead letter is edited already; the refusal names it. The editor follows the one that it shows." env:"-" placeholder:"TIME"`
	Editor   string            `json:"-" help:"The editor." env:"VISUAL,EDITOR" hidden:""`
}

// A text that was changed in an editor stays in its file until the edit is done.
func (c *dlqEdit) Run(ctx context.Context, to *streams, services []*client.Service) error {
	for _, header := range c.Header {
		name, value, found := strings.Cut(header, "=")
		if !found || name == "" {
			return usage(fmt.Sprintf("--header %q is not NAME=VALUE", header))
		}
		c.Headers = append(c.Headers, adminapi.Header{Name: name, Value: []byte(value)})
	}
	s, id, detail, err := getLetter(ctx, services, c.ID, true)
	if err != nil {
		return err
	}
	letter, file := detail.object("letter"), ""
	c.Letter = id
	before := letter.bytes("payload")
	if letter.isSet("edited_payload") {
		before = letter.bytes("edited_payload")
	}
	if c.Payload == nil && c.Headers == nil {
		c.EditedAt = letter.time("edited_at")
		file, err = c.openEditor(ctx, to, before)
	}
	of := []*client.Service{s}
	if err == nil && c.Headers == nil && bytes.Equal(before, c.Payload) {
		to.warn("the payload is unchanged; nothing to do")
		of = nil
	}
	switch {
	case err != nil:
	case c.Payload != nil && len(c.Payload) == 0: // the request would have none
		err = usage("the payload is empty")
	case c.Payload != nil && json.Valid(before) && !json.Valid(c.Payload):
		err = usage("the new payload is not valid JSON; the one before was")
	default:
		err = c.apply(ctx, to, of, func(*client.Service) any { return c })
	}
	switch kept, _ := os.ReadFile(file); {
	case file == "":
	case err == nil && (c.Yes || of == nil), bytes.Equal(kept, before):
		_ = os.Remove(file)
	case letter.isSet("edited_at"):
		to.warn("the text is kept in %s; to use it: --payload %[1]s --edited-at %s", file, letter.text("edited_at"))
	default:
		to.warn("the text is kept in %s; to use it: --payload %[1]s", file)
	}
	return err
}

func (c *dlqEdit) openEditor(ctx context.Context, to *streams, before []byte) (name string, err error) {
	editor := strings.Fields(c.Editor)
	if len(editor) == 0 {
		return "", usage("no editor: set VISUAL or EDITOR, or give --payload FILE")
	}
	file, err := os.CreateTemp("", "twinbox-payload-*.json") // 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(before)
	if err = errors.Join(err, file.Close()); err != nil {
		return file.Name(), err
	}
	command := exec.CommandContext(ctx, editor[0], append(editor[1:], file.Name())...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, to.err, to.err
	if err := command.Run(); err != nil {
		return file.Name(), fmt.Errorf("run editor: %w", err)
	}
	c.Payload, err = os.ReadFile(file.Name())
	if !bytes.HasSuffix(before, []byte("\n")) {
		c.Payload = bytes.TrimSuffix(c.Payload, []byte("\n")) // which editors add
	}
	return file.Name(), err
}
