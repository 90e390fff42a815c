package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/admin/client"
)

// MailList is "twinbox mail list".
type MailList struct {
	Operator `embed:""`

	State     string    `help:"In this state: open (uncertain or failed), pending, claimed, submitting, sent, failed, uncertain or all." enum:"open,pending,claimed,submitting,sent,failed,uncertain,all" default:"open" env:"-"`
	User      string    `help:"To this user." env:"-" placeholder:"UUID"`
	EventID   string    `help:"Because of this event." name:"event-id" env:"-"`
	Since     time.Time `help:"Listed at this time or later, RFC 3339." env:"-" placeholder:"TIME"`
	Until     time.Time `help:"Listed before this time, RFC 3339." env:"-" placeholder:"TIME"`
	Recipient bool      `help:"Show addresses, which are personal data." env:"-"`
	Limit     int       `help:"How many, 1 to 1000." short:"n" default:"100" env:"-"`
	After     string    `help:"Those after this one; the next page." env:"-" placeholder:"ID"`
}

// Run asks the service that sends mails.
func (c *MailList) Run(ctx context.Context, to streams) error {
	services, err := senders(ctx, c.Operator)
	if err != nil {
		return err
	}
	mails := []adminapi.Mail{}
	for _, state := range c.states() {
		page, err := c.page(ctx, services[0], state)
		if err != nil {
			return err
		}
		mails = append(mails, page.Items...)
	}
	slices.SortFunc(mails, func(a, b adminapi.Mail) int { return cmp.Compare(a.Id, b.Id) }) // as --after goes on
	mails = mails[:min(len(mails), max(c.Limit, 0))]
	if c.JSON {
		return writeJSON(to.out, map[string]any{"items": mails})
	}
	if len(mails) == 0 {
		return to.say("No mails.")
	}
	return c.write(to, mails)
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

func (c *MailList) page(ctx context.Context, s *client.Service, state string) (adminapi.Mails, error) {
	params := adminapi.ListMailsParams{
		State: set(adminapi.MailState(state)), UserId: set(c.User), EventId: set(c.EventID), Recipient: &c.Recipient, Limit: &c.Limit,
		After: set(c.After),
	}
	if !c.Since.IsZero() {
		params.Since = &c.Since
	}
	if !c.Until.IsZero() {
		params.Until = &c.Until
	}
	return client.Call[adminapi.Mails](s, func(api *adminapi.Client) (*http.Response, error) {
		return api.ListMails(ctx, &params)
	})
}

func (c *MailList) write(to streams, mails []adminapi.Mail) error {
	t := table{columns: []string{"ID", "STATE", "TEMPLATE", "USER", "TRIES", "LISTED", "ERROR"}}
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
	return t.write(to.out, to.width())
}

func orDash(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}
