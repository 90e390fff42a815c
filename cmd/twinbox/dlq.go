package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// LetterFilter picks dead letters; all set conditions must hold. The time is that of the last failure.
type LetterFilter struct {
	Consumer string `json:"consumer,omitempty" help:"Of this consumer." env:"-" names:"inbox stats: consumer"`
	Type     string `json:"type,omitempty" help:"Events of this type, such as user-registered." env:"-" names:"dlq list: type"`
	Key      string `json:"key,omitempty" help:"Of this key." env:"-"`
	EventID  string `json:"event_id,omitempty" help:"Of this event." name:"event-id" env:"-"`
	Code     string `json:"code,omitempty" help:"With this stable reason, such as schema_violation." env:"-" names:"dlq list: code"`
	Error    string `json:"error,omitempty" help:"Whose error contains this, in any case." env:"-" placeholder:"TEXT"`
	Window
}

func (f *LetterFilter) isSet() bool { return *f != LetterFilter{} }

// parseID reads a name such as customer/17. The number is enough where one service is asked.
func parseID(text string, services []*client.Service) (s *client.Service, id int64, err error) {
	name, number, found := strings.Cut(text, "/")
	switch {
	case !found && len(services) > 1:
		return nil, 0, usage(text + ": ids are a service's own; write customer/" + text + " or notification/" + text +
			", or give --service")
	case !found:
		name, number = services[0].Name, text
	}
	id, err = strconv.ParseInt(number, 10, 64)
	if err != nil || id < 1 {
		return nil, 0, usage(fmt.Sprintf("%q is no id of a dead letter; they look like customer/17", text))
	}
	i := slices.IndexFunc(services, func(s *client.Service) bool { return s.Name == name })
	if i < 0 {
		return nil, 0, usage(fmt.Sprintf("%q: no service %q is asked", text, name))
	}
	return services[i], id, nil
}

type dlqList struct {
	Listing
	LetterFilter

	Each  bool   `json:"-" help:"One line per dead letter instead of per error." env:"-"`
	State string `json:"state,omitempty" help:"In this state: waiting, replayed, discarded or all." enum:"waiting,replayed,discarded,all" default:"waiting" env:"-"`
	Limit *int   `json:"limit,omitempty" help:"With --each: how many of each service, 1 to 1000. Default: 100." short:"n" xor:"limit" env:"-" placeholder:"N"`
	All   bool   `json:"-" xor:"limit" help:"With --each: all of them, however many." env:"-"`
	After string `json:"after,omitempty" help:"With --each: those after this one, such as customer/100; the next page." env:"-" placeholder:"ID"`
}

func (c *dlqList) AfterApply() error {
	if !c.Each && (c.Limit != nil || c.All || c.After != "") {
		return usage("--limit, --all and --after go with --each: errors are not listed in pages")
	}
	return nil
}

func (c *dlqList) Run(ctx context.Context, to *streams, services []*client.Service) error {
	q, asked := questions["dlq list"], values(c)
	if c.Each {
		q = questions["dlq list --each"]
		q.all = c.All
	}
	if c.After != "" {
		s, id, err := parseID(c.After, services)
		if err != nil {
			return err
		}
		services, asked["after"] = []*client.Service{s}, id
	}
	if c.State != "waiting" {
		q.views = []view{{of: "items", columns: strings.Replace(q.views[0].columns, "STATE+", "STATE", 1)}}
	}
	if c.isSet() {
		q.none = "No dead letters that the filter picks"
	}
	return c.show(ctx, to, services, q, asked)
}

type dlqShow struct {
	ID      string `arg:"" help:"The dead letter, such as customer/17." names:"dlq list --each: ref"`
	Payload bool   `help:"Show the payload and the record's headers too, which may hold personal data." env:"-"`
}

const shownColumns = "id ref, consumer consumer, event event_id, type type, key key, version version, " +
	"record topic record, state state state, reason code, class class, error error, attempts attempts, " +
	"first first_failed_at time, failed failed_at time, replays replays, edited edited_at time, editor edited_by, " +
	"payload payload bytes, edited_to edited_payload bytes, next ref next"

func (c *dlqShow) Run(ctx context.Context, to *streams, services []*client.Service) error {
	s, _, shown, err := getLetter(ctx, services, c.ID, c.Payload)
	if err != nil {
		return err
	}
	letter, history := shown.object("letter"), shown.items("history")
	for _, i := range append(history, letter) {
		nameLetters(s.Name, i)
	}
	if to.json() {
		to.document(shown)
		return nil
	}
	lines := table{view{columns: shownColumns}, []item{letter}}.lines(true)
	for i, name := range lines[0] {
		if value := lines[1][i]; value != "-" && value != "0" {
			to.say("%-10s %s", name, value)
		}
	}
	for _, h := range letter.items("headers") {
		to.say("%-10s %s=%s", "header", printable(h.text("name")), printable(string(h.bytes("value"))))
	}
	for _, done := range history {
		to.say("%-10s %s %s by %s: %s", "history", show(done, "at", "time", true), show(done, "verb", "deed", true),
			printable(done.text("by")), printable(done.text("reason")))
	}
	return nil
}

func getLetter(
	ctx context.Context, services []*client.Service, name string, payload bool,
) (s *client.Service, id int64, detail item, err error) {
	s, id, err = parseID(name, services)
	if err == nil {
		asked := adminapi.DeadLetterRequest{ID: id, Payload: payload}
		detail, err = client.Call[item](ctx, s, client.Post("/admin/v1/dead-letters/show", asked))
	}
	return s, id, detail, err
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

// cures has a header for each code of a record that lacks it.
var cures = map[string]string{
	string(event.CodeMissingID): "ce_id=NEW_ID", string(event.CodeInvalidID): "ce_id=NEW_ID",
	string(event.CodeMissingType): "ce_type=TYPE", string(event.CodeMissingSource): "ce_source=SOURCE",
	string(event.CodeMissingKey): "ce_subject=KEY", string(event.CodeKeyMismatch): "ce_subject=KEY",
	string(event.CodeInvalidTime): "ce_time=TIME", string(event.CodeInvalidVersion): "ce_aggregateversion=N",
	inbox.CodeNoVersion: "ce_aggregateversion=N", string(event.CodeUnsupportedSpec): "ce_specversion=" + event.SpecVersion,
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
	case cures[code] != "":
		return fmt.Sprintf("twinbox dlq edit %s --header %s and replay it, or twinbox dlq discard %s", ref, cures[code], ref)
	case code == inbox.CodeConflict:
		return "ask for the event under a new id; twinbox dlq discard " + ref
	case l.text("class") == string(failure.Permanent) && code != inbox.CodeHandlerFailed:
		return fmt.Sprintf("twinbox dlq edit %s and replay it, or twinbox dlq discard %s", ref, ref)
	}
	return "when the cause is gone, twinbox dlq replay " + ref
}
