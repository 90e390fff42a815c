package main

import (
	"cmp"
	"context"
	"slices"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// MailList is "twinbox mail list".
type MailList struct {
	Operator `embed:""`
	Watch    `embed:""`

	State     string  `help:"In this state, such as uncertain; open: uncertain or failed; all: in any." default:"open" env:"-"`
	User      string  `help:"To this user." env:"-" placeholder:"UUID"`
	EventID   string  `help:"Because of this event." name:"event-id" env:"-"`
	Since     instant `help:"Listed at this time or later: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
	Until     instant `help:"Listed before this time." env:"-" placeholder:"TIME"`
	Recipient bool    `help:"Show addresses, which are personal data." env:"-"`
	Limit     *int    `help:"How many, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
	After     string  `help:"Those after this one; the next page." env:"-" placeholder:"ID"`
}

// Run asks the service that sends mails.
func (c *MailList) Run(ctx context.Context, to streams) error {
	err := cmp.Or(checkWindow(c.Since, c.Until), checkLimit(c.Limit, "--after goes on with the next page"))
	if err != nil {
		return err
	}
	services, err := senders(ctx, c.Operator)
	if err != nil {
		return err
	}
	return c.repeat(ctx, to, func() error { return c.list(ctx, to, services[0]) })
}

func (c *MailList) list(ctx context.Context, to streams, s *client.Service) error {
	mails, more := []adminapi.Mail{}, false
	limit := valueOr(c.Limit, defaultLimit)
	for _, state := range c.states() {
		page, err := c.page(ctx, s, state, limit)
		if err != nil {
			return err
		}
		mails, more = append(mails, page.Items...), more || page.More
	}
	slices.SortFunc(mails, func(a, b adminapi.Mail) int { return cmp.Compare(a.Id, b.Id) }) // as --after goes on
	more = more || len(mails) > limit
	mails = mails[:min(len(mails), limit)]
	if c.json() {
		return writeJSON(to.out, map[string]any{"items": mails, "more": more})
	}
	if len(mails) == 0 {
		return to.say("No mails.")
	}
	err := c.write(to, mails)
	if more {
		to.warn("there are more: go on with --after " + mails[len(mails)-1].Id)
	}
	return err
}

func (c *MailList) states() []string {
	switch c.State {
	case "open":
		return []string{"uncertain", "failed"}
	case "all":
		return []string{""}
	}
	return []string{c.State}
}

func (c *MailList) page(ctx context.Context, s *client.Service, state string, limit int) (adminapi.Mails, error) {
	params := adminapi.ListMailsParams{
		State: set(adminapi.MailState(state)), UserId: set(c.User), EventId: set(c.EventID), Recipient: &c.Recipient,
		Limit: &limit, After: set(c.After), Since: c.Since.given(), Until: c.Until.given(),
	}
	return client.Call[adminapi.Mails](ctx, s, client.Get("/admin/v1/mails", params))
}

func (c *MailList) write(to streams, mails []adminapi.Mail) error {
	t := table{
		columns: []string{"ID", "STATE", "TEMPLATE", "USER", "TRIES", "LISTED", "ERROR"},
		prose:   []string{"ERROR"}, omit: []string{"TEMPLATE", "TRIES", "USER", "LISTED"},
	}
	if c.Recipient {
		t.columns = append(t.columns, "RECIPIENT")
	}
	for _, m := range mails {
		row := []any{m.Id, m.State, m.Template, m.UserId, m.Attempts, moment(m.CreatedAt), orDash(m.Error)}
		if c.Recipient {
			row = append(row, orDash(m.Recipient))
		}
		t.add(row...)
	}
	return c.show(to, &t)
}

func orDash(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}
