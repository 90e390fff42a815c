package main

import (
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
	List    DLQList    `cmd:"" aliases:"ls" help:"The dead letters that wait, grouped by error."`
	Show    DLQShow    `cmd:"" aliases:"get" help:"One dead letter and its history."`
	Replay  DLQReplay  `cmd:"" post:"/admin/v1/dead-letters/replay" done:"Replayed" would:"try to replay" thing:"dead letter" help:"Handle dead letters again: through the inbox, in the order of their key, for their consumer alone."`
	Edit    DLQEdit    `cmd:"" done:"Edited" would:"edit" thing:"dead letter" help:"Replace the payload or headers; the original is kept."`
	Discard DLQDiscard `cmd:"" post:"/admin/v1/dead-letters/discard" done:"Discarded" would:"discard" thing:"dead letter" help:"Settle dead letters without handling them; events parked behind them are resumed."`
}

// LetterFilter picks dead letters; all set conditions must hold. The time is that of the last failure.
type LetterFilter struct {
	Consumer string `json:"consumer,omitempty" help:"Of this consumer." env:"-" names:"inbox stats: consumer"`
	Type     string `json:"type,omitempty" help:"Events of this type." env:"-" names:"dlq list: type"`
	Key      string `json:"key,omitempty" help:"Of this key." env:"-"`
	EventID  string `json:"event_id,omitempty" help:"Of this event." name:"event-id" env:"-"`
	Code     string `json:"code,omitempty" help:"With this stable reason, such as schema_violation." env:"-" names:"dlq list: code"`
	Error    string `json:"error,omitempty" help:"Whose error contains this, in any case." env:"-" placeholder:"TEXT"`
	Window
}

func (f *LetterFilter) isSet() bool { return *f != LetterFilter{} }

// parseIDs reads ids such as customer/17 and returns their services; without ids, all. A bare number is enough where
// one service is asked.
func parseIDs(
	texts []string, services []*client.Service,
) (ids map[string][]int64, of []*client.Service, err error) {
	if len(texts) == 0 {
		return nil, services, nil
	}
	ids = map[string][]int64{}
	for _, text := range texts {
		name, number, found := strings.Cut(text, "/")
		if !found && len(services) > 1 {
			return nil, nil, usage(text + ": ids are a service's own; write customer/" + text + " or notification/" + text +
				", or give --service")
		}
		if !found {
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
	of = slices.DeleteFunc(slices.Clone(services), func(s *client.Service) bool { return ids[s.Name] == nil })
	return ids, of, nil
}

// DLQList is "twinbox dlq list".
type DLQList struct {
	Listing `json:"-"`
	LetterFilter

	Each  bool   `json:"-" help:"One line per dead letter instead of per error." env:"-"`
	State string `json:"state,omitempty" help:"In this state: waiting, replayed, discarded or all." enum:"waiting,replayed,discarded,all" default:"waiting" env:"-"`
	Limit *int   `json:"limit,omitempty" help:"With --each: how many of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
	All   bool   `json:"-" help:"With --each: all of them, however many." env:"-"`
	After string `json:"-" help:"With --each: those after this one, such as customer/100; the next page." env:"-" placeholder:"ID"`
}

// AfterApply refuses pages of errors, which have none.
func (c *DLQList) AfterApply() error {
	switch {
	case !c.Each && (c.Limit != nil || c.All || c.After != ""):
		return usage("--limit, --all and --after go with --each: errors are not listed in pages")
	case c.All && c.Limit != nil:
		return usage("--all goes with no --limit")
	}
	return nil
}

// Run asks every service.
func (c *DLQList) Run(ctx context.Context, to *streams, services []*client.Service) error {
	ids, services, err := parseIDs(strings.Fields(c.After), services)
	if err != nil {
		return err
	}
	asked, err := values(c)
	if err != nil {
		return err
	}
	l := listings["dlq list"]
	if c.All {
		asked["limit"] = maxLimit
	}
	if c.Each {
		l = listings["dlq list --each"]
		l.all, asked = c.All, item{"filter": asked, "after": 0}
	}
	if c.After != "" {
		asked["after"] = ids[services[0].Name][0]
	}
	if c.State != "waiting" {
		l.views = []view{{of: "items", columns: strings.Replace(l.views[0].columns, "STATE+", "STATE", 1)}}
	}
	if c.isSet() {
		l.none = "No dead letters that the filter picks"
	}
	return c.repeat(ctx, to, func() error {
		shown, err := l.show(ctx, to, services, asked)
		if err == nil && shown == 0 && c.isSet() {
			c.warnOfOthers(ctx, to, services)
		}
		return err
	})
}

// warnOfOthers distinguishes a mistyped filter from an empty list.
func (c *DLQList) warnOfOthers(ctx context.Context, to *streams, services []*client.Service) {
	l := listings["dlq list"]
	answers, _, _ := l.ask(ctx, services, l.example)
	others := int64(0)
	for _, group := range l.itemsOf(answers) {
		count, _ := strconv.ParseInt(group.text("count"), 10, 64)
		others += count
	}
	if others > 0 {
		to.warn("%d dead letters wait that the filter does not pick", others)
	}
}

const maxLimit = 1000

// DLQShow is "twinbox dlq show".
type DLQShow struct {
	ID      string `arg:"" help:"The dead letter, such as customer/17." names:"dlq list --each: ref"`
	Payload bool   `help:"Show the payload too, which holds personal data." env:"-"`
}

const letterLines = "id ref, consumer consumer, event event_id, type type, key key, version version, " +
	"record topic record, state state state, reason code, class class, error error, attempts attempts, " +
	"first first_failed_at time, failed failed_at time, replays replays, edited edited_at time, editor edited_by, " +
	"payload payload bytes, edited_to edited_payload bytes, next ref next"

// Run asks the service that the id names.
func (c *DLQShow) Run(ctx context.Context, to *streams, services []*client.Service) error {
	s, detail, err := getLetter(ctx, services, c.ID, c.Payload)
	if err != nil {
		return err
	}
	shown, err := values(detail)
	if err != nil {
		return err
	}
	letter := shown.object("letter")
	nameLetters(s.Name, letter)
	for _, done := range shown.items("history") {
		nameLetters(s.Name, done)
	}
	if to.json() {
		to.document(shown)
		return nil
	}
	t := view{columns: letterLines}.table([]item{letter}, true)
	for i, name := range t[0] {
		if value := t[1][i]; value != "-" && value != "0" {
			to.say("%-10s %s", name, value)
		}
	}
	for _, done := range shown.items("history") {
		to.say("%-10s %s %s by %s: %s", "history", show(done, "at", "time", true), show(done, "verb", "deed", true),
			printable(done.text("by")), printable(done.text("reason")))
	}
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

func stateOf(l item, state string) string {
	switch settled := moment(l.time("settled_at")); {
	case state == "waiting" && l.isSet("holds"):
		return "waiting; later events of its key park behind it"
	case l.isSet("outcome"):
		return fmt.Sprintf("%s (%s) at %s", state, l.text("outcome"), settled)
	case settled != "":
		return state + " at " + settled
	}
	return state
}

// nextStep is the advice for a dead letter that waits.
func nextStep(l item, ref string) string {
	code := l.text("code")
	switch {
	case l.text("state") != string(deadletter.Waiting):
		return ""
	case code == inbox.CodeParked:
		return "replay or discard the dead letter of its key that failed: this one follows automatically"
	case code == inbox.CodeGap:
		return "republish the event before it, which has not come, and this one follows automatically; " +
			"if it will never come, twinbox dlq replay " + ref + " --accept-gap"
	case code == inbox.CodeJump:
		return "if its version is wrong, twinbox dlq discard " + ref + "; if it is right, and what is below it will never " +
			"come, twinbox dlq replay " + ref + " --accept-gap"
	case l.isSet("edited_by"):
		return "twinbox dlq replay " + ref
	case code == inbox.CodeTooOld:
		return "find out whether it was applied; then discard it, or replay it with --force"
	case l.text("class") == string(failure.Permanent) && code != inbox.CodeHandlerFailed:
		return fmt.Sprintf("twinbox dlq edit %s and replay it, or twinbox dlq discard %s", ref, ref)
	}
	return "when the cause is gone, twinbox dlq replay " + ref
}
