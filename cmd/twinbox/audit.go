package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// AuditCommand is "twinbox audit".
type AuditCommand struct {
	Operator `embed:""`

	Since   instant `help:"At this time or later: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
	Until   instant `help:"Before this time." env:"-" placeholder:"TIME"`
	By      string  `help:"Done by this operator." env:"-" aliases:"operator" placeholder:"NAME"`
	Verb    string  `help:"This operation, such as replay, edit, discard, republish, retry." env:"-" aliases:"operation" placeholder:"NAME"`
	Kind    string  `help:"Of these, such as dead_letter, mail, outbox_key, consumer or scheduled_event." env:"-" placeholder:"NAME"`
	Subject string  `help:"On this subject: a dead letter such as customer/17, a mail, or a key as topic/key." env:"-" placeholder:"ID"`
	Limit   *int    `help:"The newest of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}

// deed is an action with the service it was done in and the name of what it was done to.
type deed struct {
	Service string `json:"service"`
	Ref     string `json:"ref"`
	adminapi.Action
}

// Run asks every service.
func (c *AuditCommand) Run(ctx context.Context, to streams) error {
	err := cmp.Or(checkWindow(c.Since, c.Until), checkLimit(c.Limit, "narrow it down with --since, --by or --verb"))
	if err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	subject, kind := c.Subject, c.Kind
	if picked, err := parseIDs([]string{c.Subject}, services); c.Subject != "" && err == nil {
		services = picked.of(services)
		subject, kind = strconv.FormatInt(picked.ids[services[0].Name][0], 10), cmp.Or(kind, "dead_letter")
	}
	newest, limit := true, valueOr(c.Limit, defaultLimit)
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.Actions, error) {
		return client.Call[adminapi.Actions](ctx, s, client.Get("/admin/v1/audit", adminapi.ListAuditParams{
			By: set(c.By), Verb: set(c.Verb), Kind: set(adminapi.ActionKind(kind)), Subject: set(subject),
			Since: c.Since.given(), Until: c.Until.given(), Newest: &newest, Limit: &limit,
		}))
	})
	if len(answers) == 0 {
		return err
	}
	return both(c.write(to, answers), err)
}

func (c *AuditCommand) write(to streams, answers []answerOf[adminapi.Actions]) error {
	deeds, more := []deed{}, false
	for _, a := range answers {
		deeds = append(deeds, deedsOf(a.service.Name, a.value.Items)...)
		more = more || a.value.More
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return a.At.Compare(b.At) })
	if c.json() {
		return writeJSON(to.out, map[string]any{"items": deeds, "more": more})
	}
	if len(deeds) == 0 {
		return to.say("Nothing was done by hand.")
	}
	t := table{
		columns: []string{"TIME", "SERVICE", "BY", "DID", "KIND", "TO", "COUNT", "REASON"},
		prose:   []string{"REASON"}, omit: []string{"KIND", "COUNT", "SERVICE"},
	}
	for _, d := range deeds {
		t.add(moment(d.At), d.Service, d.By, deedOf(d.Action), d.Kind, cmp.Or(d.Ref, "-"), d.Count, d.Reason)
	}
	err := c.show(to, &t)
	if more {
		to.warn("there is more, and older: give --until, or a larger --limit")
	}
	return err
}

func deedsOf(service string, actions []adminapi.Action) []deed {
	deeds := make([]deed, len(actions))
	for i, action := range actions {
		deeds[i] = deed{service, refOf(service, action), action}
	}
	return deeds
}

// refOf names what was touched as other commands take it.
func refOf(service string, a adminapi.Action) string {
	if id, err := strconv.ParseInt(a.Subject, 10, 64); err == nil && a.Kind == adminapi.ActionKindDeadLetter {
		return letterID(service, id)
	}
	return a.Subject
}

// deedOf says what was done, and how it ended where that is not in the word itself.
func deedOf(a adminapi.Action) string {
	if a.Detail == nil || (*a.Detail)["code"] == "" {
		return a.Verb
	}
	return fmt.Sprintf("%s (%s: %s)", a.Verb, (*a.Detail)["outcome"], (*a.Detail)["code"])
}
