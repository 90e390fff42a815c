package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// MailCommands are "twinbox mail ...".
type MailCommands struct {
	List     MailList   `cmd:"" aliases:"ls" help:"The mails that wait for an operator's decision: uncertain and failed ones."`
	Retry    MailChange `cmd:"" post:"/admin/v1/mails/retry" done:"Put back" would:"put back" thing:"mail" help:"Send uncertain or failed mails again. An uncertain one may then arrive twice."`
	MarkSent MailChange `cmd:"" post:"/admin/v1/mails/mark-sent" done:"Marked" would:"mark" thing:"mail" after:" as sent" help:"Settle uncertain mails of which you know that they arrived."`
}

// MailList is "twinbox mail list".
type MailList struct {
	Survey `json:"-"`
	Window

	State     string   `json:"state,omitempty" help:"In this state, such as uncertain; open: uncertain or failed; all: in any." default:"open" env:"-"`
	User      string   `json:"user_id,omitempty" help:"To this user." env:"-" placeholder:"UUID"`
	EventID   string   `json:"event_id,omitempty" help:"Because of this event." name:"event-id" env:"-"`
	Recipient bool     `json:"recipient,omitempty" help:"Show addresses, which are personal data." env:"-"`
	Limit     positive `json:"limit" default:"100" help:"How many, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
	After     string   `json:"after,omitempty" help:"Those after this one; the next page." env:"-" placeholder:"ID"`
}

// listed is a mail with the service that sends it.
type listed struct {
	Service string `json:"service"`
	adminapi.Mail
}

// Run asks the services that send mails.
func (c *MailList) Run(ctx context.Context, to *streams) error {
	return c.repeat(ctx, to, func() error { return c.list(ctx, to) })
}

// statesOf are those that a word for several stands for.
var statesOf = map[string][]string{"open": {"uncertain", "failed"}, "all": {""}}

func (c *MailList) list(ctx context.Context, to *streams) error {
	services, err := c.ProvideServices()
	if err != nil {
		return err
	}
	states, several := statesOf[c.State]
	if !several {
		states = []string{c.State}
	}
	answers, err := ask(services, func(s *client.Service) (all adminapi.Mails, err error) {
		for _, state := range states {
			asked := *c
			asked.State = state
			page, err := client.Call[adminapi.Mails](ctx, s, client.Get("/admin/v1/mails", asked))
			if err != nil {
				return all, err
			}
			all.Items, all.More = append(all.Items, page.Items...), all.More || page.More
		}
		return all, nil
	})
	switch {
	case len(answers) > 0:
	case err == nil:
		return usage("the services asked send no mails")
	default:
		return err
	}
	mails, more := []listed{}, false
	for _, a := range answers {
		for _, m := range a.Value.Items {
			mails = append(mails, listed{a.Service, m})
		}
		more = more || a.Value.More
	}
	slices.SortFunc(mails, func(a, b listed) int { return cmp.Compare(a.ID, b.ID) }) // as --after goes on
	more = more || len(mails) > int(c.Limit)
	mails = mails[:min(len(mails), int(c.Limit))]
	t := table{
		columns: []string{"SERVICE", "ID", "STATE", "TEMPLATE", "USER", "TRIES", "LISTED", "ERROR"},
		prose:   "ERROR", omit: []string{"USER", "TEMPLATE", "TRIES", "LISTED"}, none: "No mails.\n",
	}
	if c.Recipient {
		t.columns = append(t.columns, "RECIPIENT")
	}
	for _, m := range mails {
		t.add(m.Service, m.ID, m.State, m.Template, m.UserID, m.Attempts, moment(m.CreatedAt), m.Error, m.Recipient)
	}
	err = to.reply(err, map[string]any{"items": mails, "more": more}, &t)
	if more {
		to.warn("there are more: go on with --after %s", mails[len(mails)-1].ID)
	}
	return err
}

// MailChange is "twinbox mail retry" and "... mark-sent".
type MailChange struct {
	Change

	IDs []string `arg:"" name:"id" json:"ids" help:"Mails, as \"mail list\" shows them."`
}

// AfterApply refuses what is no id. One that is given twice is meant once.
func (c *MailChange) AfterApply() error {
	for _, id := range c.IDs {
		if parsed, err := uuid.Parse(id); err != nil || parsed.String() != id {
			return usage(id + " is no id of a mail: a UUID in lower case")
		}
	}
	c.IDs = slices.Compact(slices.Sorted(slices.Values(c.IDs)))
	return nil
}
