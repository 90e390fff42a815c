package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// DLQCommands are "twinbox dlq ...".
type DLQCommands struct {
	List    DLQList    `cmd:"" aliases:"ls" help:"What waits in the dead letters, grouped by error."`
	Show    DLQShow    `cmd:"" aliases:"get" help:"One dead letter and its history."`
	Replay  DLQReplay  `cmd:"" done:"Replayed" would:"try to replay" thing:"dead letter" help:"Handle dead letters again: through the inbox, in the order of their key, for their consumer alone."`
	Edit    DLQEdit    `cmd:"" done:"Edited" would:"edit" thing:"dead letter" help:"Replace the payload or headers; the original is kept."`
	Discard DLQDiscard `cmd:"" done:"Discarded" would:"discard" thing:"dead letter" help:"Settle dead letters without handling them; events parked behind them are resumed."`
}

// LetterFilter picks dead letters; what is given must all hold. The time is that of the last failure.
type LetterFilter struct {
	Consumer string `help:"Of this consumer." env:"-"`
	Type     string `help:"Events of this type." env:"-"`
	Key      string `help:"Of this key." env:"-"`
	EventID  string `help:"Of this event." name:"event-id" env:"-"`
	Code     string `help:"With this stable reason, such as schema_violation." env:"-"`
	Error    string `help:"Whose error contains this, in any case." env:"-" placeholder:"TEXT"`
	Window
}

func (f *LetterFilter) given() bool { return *f != LetterFilter{} }

// body is the filter as the API takes it.
func (f *LetterFilter) body(state string, ids []int64) adminapi.DeadLetterFilter {
	body := adminapi.DeadLetterFilter{
		IDs: ids, Consumer: f.Consumer, Type: f.Type, Key: f.Key, EventID: f.EventID, Code: f.Code, Error: f.Error,
		Since: f.Since.Time, Until: f.Until.Time,
	}
	if state != "all" {
		body.State = deadletter.State(state)
	}
	return body
}

// warnOfName warns of a consumer that no service has: it may be gone, or mistyped.
func (f *LetterFilter) warnOfName(ctx context.Context, to *streams, services []*client.Service) {
	if f.Consumer == "" {
		return
	}
	if _, err := withConsumer(ctx, services, f.Consumer); exitCode(err) == exitNotFound {
		to.warn("%v", err)
	}
}

// letterID is how people write the id of a dead letter: ids are a service's own.
func letterID(service string, id int64) string { return service + "/" + strconv.FormatInt(id, 10) }

// parseIDs reads ids such as customer/17, and says of which services they are: all, where none is given. A bare number
// will do where one service is asked.
func parseIDs(
	texts []string, services []*client.Service,
) (ids map[string][]int64, of []*client.Service, err error) {
	if len(texts) == 0 {
		return nil, services, nil
	}
	ids = map[string][]int64{}
	for _, text := range texts {
		name, number, found := strings.Cut(text, "/")
		if !found {
			if len(services) > 1 {
				return nil, nil, usage(text + ": ids are a service's own; write customer/" + text + " or notification/" + text +
					", or give --service")
			}
			name, number = services[0].Name, name
		}
		id, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil || id < 1 || strconv.FormatInt(id, 10) != number:
			return nil, nil, usage(fmt.Sprintf("%q is no id of a dead letter; they look like customer/17", text))
		case !slices.ContainsFunc(services, func(s *client.Service) bool { return s.Name == name }):
			return nil, nil, usage(fmt.Sprintf("%q: no service %q is asked", text, name))
		case !slices.Contains(ids[name], id):
			ids[name] = append(ids[name], id)
		}
	}
	for _, s := range services {
		if ids[s.Name] != nil {
			of = append(of, s)
		}
	}
	return ids, of, nil
}

const (
	maxLimit     = 1000
	defaultLimit = 100
)

// DLQList is "twinbox dlq list".
type DLQList struct {
	Survey
	LetterFilter

	Each  bool     `help:"One line per dead letter instead of per error." env:"-"`
	State string   `help:"In this state: waiting, replayed, discarded or all." enum:"waiting,replayed,discarded,all" default:"waiting" env:"-"`
	Limit positive `help:"With --each: how many of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
	All   bool     `help:"With --each: all of them, however many." env:"-"`
	After string   `help:"With --each: those after this one, such as customer/100; the next page." env:"-" placeholder:"ID"`
}

// AfterApply refuses pages of what has none.
func (c *DLQList) AfterApply() error {
	switch {
	case !c.Each && (c.Limit > 0 || c.All || c.After != ""):
		return usage("--limit, --all and --after go with --each: errors are not listed in pages")
	case c.All && c.Limit > 0:
		return usage("--all goes with no --limit")
	}
	return nil
}

// Run asks every service.
func (c *DLQList) Run(ctx context.Context, to *streams, services []*client.Service) error {
	var after int64
	if c.After != "" {
		ids, of, err := parseIDs([]string{c.After}, services)
		if err != nil {
			return err
		}
		services, after = of, ids[of[0].Name][0]
	}
	c.warnOfName(ctx, to, services)
	return c.repeat(ctx, to, func() error {
		if c.Each {
			return c.each(ctx, to, services, after)
		}
		return c.groups(ctx, to, services)
	})
}

// group is a group with the service it is of, and its example as other commands take it.
type group struct {
	Service string `json:"service"`
	adminapi.DeadLetterGroup
	Example string `json:"example"` // in place of the embedded one
}

const noLetters = "No dead letters.\n"

func (c *DLQList) groups(ctx context.Context, to *streams, services []*client.Service) error {
	answers, err := ask(services, call[adminapi.DeadLetterGroups](
		ctx, client.Post("/admin/v1/dead-letters/groups", c.body(c.State, nil))))
	if len(answers) == 0 {
		return err
	}
	groups := []group{}
	t := table{
		columns: []string{"CONSUMER", "CODE", "TYPE", "COUNT", "KEYS", "LAST", "LATEST", "ERROR"},
		prose:   "ERROR", omit: []string{"TYPE", "LAST", "KEYS", "ERROR"}, none: noLetters,
	}
	for _, a := range answers {
		if a.Value.More {
			to.warn("%s has more and smaller groups; pick some of them with --consumer or --code", a.Service)
		}
		for _, g := range a.Value.Items {
			example := letterID(a.Service, g.Example)
			groups = append(groups, group{a.Service, g, example})
			t.add(g.Consumer, g.Code, g.Type, g.Count, g.Keys, moment(g.Newest), example, g.Error)
		}
	}
	return to.reply(err, map[string]any{"items": groups}, &t)
}

// letter is a dead letter with the id that names it in every service.
type letter struct {
	Ref string `json:"ref"`
	adminapi.DeadLetter
}

func (c *DLQList) each(ctx context.Context, to *streams, services []*client.Service, after int64) error {
	answers, err := ask(services, func(s *client.Service) (adminapi.DeadLetters, error) {
		return c.pages(ctx, s, after)
	})
	if len(answers) == 0 {
		return err
	}
	letters, next := []letter{}, []string{}
	t := table{
		columns: []string{"ID", "CONSUMER", "TYPE", "KEY", "VERSION", "CODE", "TRIES", "FAILED", "ERROR"},
		prose:   "ERROR", omit: []string{"TYPE", "FAILED", "TRIES", "VERSION", "CONSUMER", "ERROR", "CODE"}, none: noLetters,
	}
	if c.State != "waiting" { // what all of them do
		t.columns = append(t.columns, "STATE")
	}
	for _, a := range answers {
		for _, l := range a.Value.Items {
			ref := letterID(a.Service, l.ID)
			letters = append(letters, letter{ref, l})
			t.add(ref, l.Consumer, l.Type, l.Key, l.Version, l.Code, l.Attempts, moment(l.FailedAt), l.Error, l.State)
		}
		if a.Value.More {
			next = append(next, letters[len(letters)-1].Ref)
		}
	}
	err = to.reply(err, map[string]any{"items": letters, "next": next}, &t)
	if len(next) > 0 {
		to.warn("there are more: go on with --after %s, or list them with --all", strings.Join(next, " and with --after "))
	}
	return err
}

// pages is the one page that is asked for, or all there are.
func (c *DLQList) pages(ctx context.Context, s *client.Service, after int64) (all adminapi.DeadLetters, err error) {
	query := adminapi.DeadLetterQuery{Filter: c.body(c.State, nil), After: after}
	query.Filter.Limit = int(cmp.Or(c.Limit, defaultLimit))
	if c.All {
		query.Filter.Limit = maxLimit
	}
	for {
		page, err := client.Call[adminapi.DeadLetters](ctx, s, client.Post("/admin/v1/dead-letters/query", query))
		if err != nil {
			return all, err
		}
		all.Items, all.More = append(all.Items, page.Items...), page.More
		if !c.All || !page.More {
			return all, nil
		}
		query.After = page.Items[len(page.Items)-1].ID
	}
}

// DLQShow is "twinbox dlq show".
type DLQShow struct {
	Operator

	ID      string `arg:"" help:"The dead letter, such as customer/17."`
	Payload bool   `help:"Show the payload too, which holds personal data." env:"-"`
}

// Run asks the service that the id names.
func (c *DLQShow) Run(ctx context.Context, to *streams, services []*client.Service) error {
	s, detail, err := getLetter(ctx, services, c.ID, c.Payload)
	if err != nil {
		return err
	}
	if to.json() {
		to.document(map[string]any{
			"letter": letter{letterID(s.Name, detail.Letter.ID), detail.Letter}, "history": deedsOf(s.Name, detail.History),
		})
		return nil
	}
	c.write(to, s.Name, detail)
	return nil
}

func getLetter(
	ctx context.Context, services []*client.Service, id string, payload bool,
) (s *client.Service, detail adminapi.DeadLetterDetail, err error) {
	ids, of, err := parseIDs([]string{id}, services)
	if err != nil {
		return nil, detail, err
	}
	detail, err = client.Call[adminapi.DeadLetterDetail](ctx, of[0], client.Get(
		fmt.Sprintf("/admin/v1/dead-letters/%d", ids[of[0].Name][0]), adminapi.GetDeadLetterParams{Payload: payload}))
	return of[0], detail, err
}

func (c *DLQShow) write(to *streams, service string, d adminapi.DeadLetterDetail) {
	l, id := d.Letter, letterID(service, d.Letter.ID)
	field := func(name, format string, values ...any) {
		to.say("%-10s %s", name, printable(fmt.Sprintf(format, values...)))
	}
	field("id", "%s", id)
	field("consumer", "%s", l.Consumer)
	field("event", "%s, %s", l.EventID, l.Type)
	field("key", "%s, version %d", l.Key, l.Version)
	field("record", "%s[%d]@%d, %d bytes", l.Topic, l.Partition, l.Offset, l.Bytes)
	field("state", "%s", stateOf(l))
	field("reason", "%s (%s)", l.Code, l.Class)
	field("error", "%s", l.Error)
	field("attempts", "%d, from %s to %s", l.Attempts, moment(l.FirstFailedAt), moment(l.FailedAt))
	if l.Replays > 0 {
		field("replays", "%d failed", l.Replays)
	}
	if l.EditedBy != "" {
		field("edited", "by %s at %s", l.EditedBy, moment(l.EditedAt))
	}
	if c.Payload {
		field("payload", "%s", string(l.Payload))
		if l.EditedPayload != nil {
			field("edited to", "%s", string(l.EditedPayload))
		}
	}
	if next := nextStep(l, id); next != "" {
		field("next", "%s", next)
	}
	for _, a := range d.History {
		field("history", "%s %s by %s: %s", moment(a.At), deedOf(a), a.By, a.Reason)
	}
}

// stateOf says what the dead letter does to its key, too.
func stateOf(l adminapi.DeadLetter) string {
	switch {
	case l.State == "waiting" && l.Holds:
		return "waiting; later events of its key park behind it"
	case l.Outcome != "":
		return fmt.Sprintf("%s (%s) at %s", l.State, l.Outcome, moment(l.SettledAt))
	case !l.SettledAt.IsZero():
		return fmt.Sprintf("%s at %s", l.State, moment(l.SettledAt))
	}
	return string(l.State)
}

// nextStep is what an operator does about a dead letter that waits.
func nextStep(l adminapi.DeadLetter, id string) string {
	switch {
	case l.State != deadletter.Waiting:
		return ""
	case l.Code == inbox.CodeParked:
		return "replay or discard the dead letter of its key that failed: this one follows automatically"
	case l.Code == inbox.CodeGap:
		return "republish the event before it, which has not come, and this one follows automatically; " +
			"if it will never come, twinbox dlq replay " + id + " --accept-gap"
	case l.Code == inbox.CodeJump:
		return "if its version is wrong, twinbox dlq discard " + id + "; if it is right, and what is below it will never " +
			"come, twinbox dlq replay " + id + " --accept-gap"
	case l.EditedBy != "":
		return "twinbox dlq replay " + id
	case l.Code == inbox.CodeTooOld:
		return "find out whether it was applied; then discard it, or replay it with --force"
	case l.Class == string(failure.Permanent) && l.Code != inbox.CodeHandlerFailed:
		return fmt.Sprintf("twinbox dlq edit %s and replay it, or twinbox dlq discard %s", id, id)
	}
	return "when the cause is gone, twinbox dlq replay " + id
}
