package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// DLQEdit is "twinbox dlq edit".
type DLQEdit struct {
	Operator `embed:""`
	Change   `embed:""`

	ID      string   `arg:"" help:"The dead letter, such as customer/17."`
	Payload string   `help:"The new payload; - is standard input. Default: without --header, $VISUAL or $EDITOR is opened on the current one." env:"-" placeholder:"FILE"`
	Header  []string `help:"A header of the record, such as ce_id; replaces those of its name. May be repeated." sep:"none" env:"-" placeholder:"NAME=VALUE"`
	Editor  string   `help:"The editor." env:"VISUAL,EDITOR" hidden:""`
}

// Run edits one dead letter.
func (c *DLQEdit) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	headers, err := c.headers()
	if err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	s, detail, err := getLetter(ctx, services, c.ID, true)
	if err == nil {
		err = identify(ctx, []*client.Service{s})
	}
	if err != nil {
		return err
	}
	request := adminapi.EditRequest{By: c.who(), Reason: c.why(), DryRun: !c.Yes}
	if len(headers) > 0 {
		request.Headers = &headers
	}
	var file string
	if c.Payload != "" || len(headers) == 0 {
		before := current(detail.Letter)
		after, kept, err := c.newPayload(ctx, to, before)
		switch {
		case err != nil:
			return err
		case bytes.Equal(before, after) && len(headers) == 0:
			return c.unchanged(to, s.Name)
		case json.Valid(before) && !json.Valid(after):
			return usage("the new payload is not valid JSON, as the one before was" + keptIn(kept))
		}
		request.Payload, file = &after, kept
	}
	result, err := client.Call[adminapi.Result](ctx, s,
		client.Post(fmt.Sprintf("/admin/v1/dead-letters/%d/edit", detail.Letter.Id), request))
	if err != nil {
		return fmt.Errorf("%w%s", err, keptIn(file))
	}
	if c.Yes && file != "" {
		_ = os.Remove(file)
	}
	var sum effects
	sum.add(s.Name, result)
	what := effect{done: "Edited", would: "edit", thing: "dead letter"}
	if file != "" && !c.Yes {
		what.after = "; the text is in " + file + ", give it as --payload"
	}
	return sum.write(to, c.Operator, what)
}

func (c *DLQEdit) unchanged(to streams, service string) error {
	if !c.json() {
		return to.say("The payload is what it was; nothing to do.")
	}
	var none effects
	none.add(service, adminapi.Result{DryRun: !c.Yes})
	return none.write(to, c.Operator, effect{})
}

func (c *DLQEdit) headers() ([]adminapi.Header, error) {
	headers := make([]adminapi.Header, len(c.Header))
	for i, header := range c.Header {
		name, value, found := strings.Cut(header, "=")
		if !found || name == "" {
			return nil, usage(fmt.Sprintf("--header %q is not NAME=VALUE", header))
		}
		headers[i] = adminapi.Header{Name: name, Value: []byte(value)}
	}
	return headers, nil
}

// current is what a replay would take.
func current(l adminapi.DeadLetter) []byte {
	for _, payload := range []*[]byte{l.EditedPayload, l.Payload} {
		if payload != nil {
			return *payload
		}
	}
	return nil
}

// maxPayload is far above what a broker takes.
const maxPayload = 1 << 20

// newPayload reads the given payload, or opens the operator's editor. Then it is in a
// file, too, so that a refusal or a dry run does not lose the text.
func (c *DLQEdit) newPayload(ctx context.Context, to streams, before []byte) (after []byte, file string, err error) {
	if c.Payload == "" {
		return c.edit(ctx, to, before)
	}
	from := to.in
	if c.Payload != "-" {
		open, err := os.Open(c.Payload)
		if err != nil {
			return nil, "", usage(err.Error())
		}
		defer open.Close()
		from = open
	}
	after, err = io.ReadAll(io.LimitReader(from, maxPayload+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("read payload: %w", err)
	case len(after) > maxPayload:
		return nil, "", usage(fmt.Sprintf("the payload is longer than %d bytes", maxPayload))
	}
	return after, "", nil
}

func (c *DLQEdit) edit(ctx context.Context, to streams, before []byte) (after []byte, file string, err error) {
	editor := strings.Fields(c.Editor)
	if len(editor) == 0 {
		return nil, "", usage("no editor: set VISUAL or EDITOR, or give --payload FILE")
	}
	temp, err := os.CreateTemp("", "twinbox-payload-*.json") // 0600
	if err != nil {
		return nil, "", fmt.Errorf("make file for the editor: %w", err)
	}
	if _, err := temp.Write(before); err != nil {
		return nil, "", fmt.Errorf("write file for the editor: %w", err)
	}
	if err := temp.Close(); err != nil {
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
