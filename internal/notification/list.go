package notification

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/domain"
)

// MailFilter chooses mails; a zero field chooses all.
type MailFilter struct {
	State    MailState
	UserID   domain.UserID
	EventID  string
	From, To time.Time // listed at From or later and before To

	// WithRecipient asks for the addresses, which are personal data and left out otherwise.
	WithRecipient bool
	// Limit is the most to return. Default 100, at most 1001.
	Limit int
	// After is the last mail of the page before.
	After uuid.UUID
}

// MailView is one mail on the list, without its content.
type MailView struct {
	ID        uuid.UUID     `json:"id"`
	State     MailState     `json:"state"`
	EventID   string        `json:"event_id"`
	Template  string        `json:"template"`
	UserID    domain.UserID `json:"user_id"`
	Recipient domain.Email  `json:"recipient,omitempty"` // when asked for
	Attempts  int           `json:"attempts"`
	Doubts    int           `json:"doubts"`          // attempts of which nobody knows whether the server took the mail
	Error     string        `json:"error,omitempty"` // of the last attempt
	CreatedAt time.Time     `json:"created_at"`
	DueAt     time.Time     `json:"due_at"` // of a pending mail: not before
	SentAt    *time.Time    `json:"sent_at,omitempty"`
}

const (
	defaultMailLimit = 100
	maxMailLimit     = 1001 // a page of 1000, and the one that says that there are more
)

// A mail that is sent is one whose lease is done.
const listMails = `
select mail.id, case lease.state when 'done' then 'sent' else lease.state end, mail.event_id, template, user_id,
       case when $6 then recipient else '' end, attempts, doubts, coalesce(error, ''), created_at, due_at,
       case lease.state when 'done' then ended_at end
from mail join lease on lease.event_id = mail.event_id and lease.handler = 'mail.' || mail.template
where ($1 = '' or lease.state = case $1 when 'sent' then 'done' else $1 end)
  and ($2 = '' or user_id = nullif($2, '')::uuid) and ($3 = '' or mail.event_id = $3)
  and ($4::timestamptz is null or created_at >= $4) and ($5::timestamptz is null or created_at < $5)
  and mail.id > $7
order by mail.id limit $8`

// List returns a page of the mails that the filter chooses, in the order in which they were listed.
func (m *Mails) List(ctx context.Context, f MailFilter) ([]MailView, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultMailLimit
	}
	rows, err := m.pool.Query(ctx, listMails, f.State, f.UserID, f.EventID, orNull(f.From), orNull(f.To),
		f.WithRecipient, f.After, min(limit, maxMailLimit))
	if err != nil {
		return nil, fmt.Errorf("list mails: %w", err)
	}
	views, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v MailView, err error) {
		return v, row.Scan(&v.ID, &v.State, &v.EventID, &v.Template, &v.UserID, &v.Recipient, &v.Attempts,
			&v.Doubts, &v.Error, &v.CreatedAt, &v.DueAt, &v.SentAt)
	})
	if err != nil {
		return nil, fmt.Errorf("list mails: %w", err)
	}
	return views, nil
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
