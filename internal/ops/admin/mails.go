package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

// MailList is a list of mails, each the effect of a lease of one handler. Changes are audited as of kind mail.
type MailList struct {
	Pool    *pgxpool.Pool
	Handler string // of their leases
	// Query selects id (uuid), event_id, template, user_id (uuid of the subject: a user, an order), recipient,
	// correlation_id and created_at. The first four need indexes.
	Query string
	// Sent runs in the transaction that marks mails as sent, Committed after it. Default: neither.
	Sent      func(ctx context.Context, tx pgx.Tx, sent ...lease.Settled) error
	Committed func()
}

const stateOf = `case lease.state when 'done' then 'sent' else lease.state end`

// $1 is the handler.
func (l *MailList) from() string {
	return ` from (` + l.Query + `) mail join lease on lease.event_id = mail.event_id and lease.handler = $1 `
}

const listColumns = `
select mail.id, ` + stateOf + ` as state, mail.event_id, mail.template, mail.user_id,
       coalesce(case when $7 then mail.recipient end, '') as recipient, attempts, coalesce(error, '') as error,
       mail.created_at, due_at, case lease.state when 'done' then ended_at end as sent_at`

const listConditions = `
where ($2 = '' or lease.state = case $2 when 'sent' then 'done' else $2 end
    or $2 = 'open' and lease.state in ('uncertain', 'failed'))
  and ($3 = '' or mail.user_id = nullif($3, '')::uuid) and ($4 = '' or mail.event_id = $4)
  and ($5::timestamptz is null or mail.created_at >= $5) and ($6::timestamptz is null or mail.created_at < $6)
  and mail.id > coalesce(nullif($8, '')::uuid, '00000000-0000-0000-0000-000000000000')
order by mail.id limit $9`

// List returns mails in the order of their ids. An empty condition picks all.
func (l *MailList) List(ctx context.Context, q adminapi.MailQuery) ([]adminapi.Mail, error) {
	rows, _ := l.Pool.Query(ctx, listColumns+l.from()+listConditions, l.Handler, q.State, q.UserID, q.EventID,
		zeronull.Timestamptz(q.Since), zeronull.Timestamptz(q.Until), q.Recipient, q.After, q.Limit)
	listed, err := pgx.CollectRows(rows, pgx.RowToStructByName[adminapi.Mail])
	if err != nil {
		return nil, fmt.Errorf("list mails: %w", err)
	}
	return listed, nil
}

func (s handlers) mails(ctx context.Context, asked adminapi.MailQuery) (out adminapi.Mails, err error) {
	if s.Mails == nil {
		return out, errNoMails
	}
	var more bool
	out.Items, more, err = page(asked.Limit, func(limit int) ([]adminapi.Mail, error) {
		asked.Limit = limit
		return s.Mails.List(ctx, asked)
	})
	if more {
		out.Next = out.Items[len(out.Items)-1].ID
	}
	return out, err
}

func (s handlers) settle(
	how func(*MailList, context.Context, []string, audit.Change) (audit.Result, error),
) changing[adminapi.MailRequest] {
	return func(ctx context.Context, change audit.Change, asked adminapi.MailRequest) (audit.Result, error) {
		if s.Mails == nil {
			return audit.Result{}, errNoMails
		}
		return how(s.Mails, ctx, asked.Ids, change)
	}
}

// Retry makes uncertain, failed and skipped mails pending, due immediately, with zero attempts and the same Message-ID.
// An uncertain mail may arrive twice.
func (l *MailList) Retry(ctx context.Context, ids []string, c audit.Change) (audit.Result, error) {
	return l.settle(ctx, ids, c, settlement{
		verb: "retry", from: []adminapi.MailState{adminapi.Uncertain, adminapi.Failed, adminapi.Skipped},
		states: "uncertain, failed or skipped", to: adminapi.Pending,
		change: func(ctx context.Context, tx pgx.Tx, events []string) error {
			return lease.Reopen(ctx, tx, l.Handler, events)
		},
	})
}

// Skip gives up failed mails.
func (l *MailList) Skip(ctx context.Context, ids []string, c audit.Change) (audit.Result, error) {
	return l.settle(ctx, ids, c, settlement{
		verb: "skip", from: []adminapi.MailState{adminapi.Failed}, states: "failed", to: adminapi.Skipped,
		change: func(ctx context.Context, tx pgx.Tx, events []string) error {
			return lease.SkipFailed(ctx, tx, l.Handler, events)
		},
	})
}

// MarkSent marks uncertain mails as sent. The operator must know that the server took them.
func (l *MailList) MarkSent(ctx context.Context, ids []string, c audit.Change) (audit.Result, error) {
	result, err := l.settle(ctx, ids, c, settlement{
		verb: "mark_sent", from: []adminapi.MailState{adminapi.Uncertain}, states: "uncertain", to: adminapi.Sent,
		change: func(ctx context.Context, tx pgx.Tx, events []string) error {
			settled, err := lease.Settle(ctx, tx, l.Handler, events)
			if err != nil || l.Sent == nil {
				return err
			}
			return l.Sent(ctx, tx, settled...)
		},
	})
	if err == nil && l.Committed != nil {
		l.Committed()
	}
	return result, err
}

type settlement struct {
	verb   string
	from   []adminapi.MailState // the states in which it means something
	states string               // their names
	to     adminapi.MailState
	change func(ctx context.Context, tx pgx.Tx, events []string) error
}

func (l *MailList) settle(
	ctx context.Context, ids []string, c audit.Change, s settlement,
) (result audit.Result, err error) {
	var found []mail
	var events []string
	result.DryRun = c.DryRun
	err = c.MakeMany(ctx, l.Pool, func(tx pgx.Tx) (actions []audit.Action, err error) {
		if found, err = l.find(ctx, tx, lockedByID, ids); err != nil {
			return nil, err
		}
		for _, mail := range found {
			if !slices.Contains(s.from, mail.State) {
				result.Fail(mail.ID, "mail_not_settled", "it is "+string(mail.State)+", not "+s.states)
				continue
			}
			events = append(events, mail.EventID)
			actions = append(actions, c.Action(s.verb, "mail", mail.ID, string(mail.State), string(s.to)))
		}
		if len(events) == 0 {
			return actions, nil
		}
		return actions, s.change(ctx, tx, events)
	})
	switch {
	case err != nil:
		return audit.Result{}, fmt.Errorf("%s mails: %w", s.verb, err)
	case len(found) == 0:
		return result, errNoMail
	}
	for _, id := range ids {
		if !slices.ContainsFunc(found, func(m mail) bool { return m.ID == id }) {
			result.Fail(id, string(errNoMail.Code), "there is no such mail")
		}
	}
	result.Count = int64(len(events))
	return result, nil
}

var errNoMail = problem(http.StatusNotFound, "mail_not_found", "There is no such mail.")

type mail struct {
	ID, EventID, Key, Correlation string
	State                         adminapi.MailState
	Attempts                      int
	Error                         string
	CreatedAt, StateAt            time.Time
}

const (
	// Only the lease knows when a mail was claimed: an open one is in its state now.
	selectMail = `
select mail.id::text, mail.event_id, mail.user_id::text, mail.correlation_id, ` + stateOf + `, lease.attempts,
    coalesce(lease.error, ''), mail.created_at, coalesce(lease.ended_at, clock_timestamp())`
	lockedByID = `where mail.id = any($2::text[]::uuid[]) order by mail.id for update of lease`
	byAnyID    = `where mail.id = $2 or mail.user_id = $2 or mail.event_id = $3 order by mail.id limit 1000`
)

func (l *MailList) find(ctx context.Context, q audit.Querier, where string, args ...any) ([]mail, error) {
	rows, _ := q.Query(ctx, selectMail+l.from()+where, append([]any{l.Handler}, args...)...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[mail])
	if err != nil {
		return nil, fmt.Errorf("read mails: %w", err)
	}
	return found, nil
}

// Tell is the [Teller] of the mails. It knows their ids and those of their subjects and events.
func (l *MailList) Tell(ctx context.Context, id string) (told adminapi.Story, err error) {
	var parsed *uuid.UUID
	if u, err := uuid.Parse(id); err == nil {
		parsed = &u
	}
	found, err := l.find(ctx, l.Pool, byAnyID, parsed, id)
	if err != nil {
		return told, err
	}
	for _, m := range found {
		if m.ID == id {
			told.Kind = adminapi.StoryKindMail
		}
		told.Related = append(told.Related, m.EventID)
		owed, detail := m.step(m.CreatedAt, adminapi.Owed, ""), ""
		if m.Attempts > 0 {
			detail = strings.TrimSuffix(fmt.Sprintf("attempts: %d; %s", m.Attempts, m.Error), "; ")
		}
		if m.State == adminapi.Pending {
			owed.Detail = detail
		}
		told.Steps = append(told.Steps, owed)
		if m.State != adminapi.Pending {
			told.Steps = append(told.Steps, m.step(m.StateAt, string(m.State), detail))
		}
		actions, err := audit.Of(ctx, l.Pool, "mail", m.ID)
		if err != nil {
			return told, err
		}
		for _, a := range actions {
			done := m.step(a.At, a.Verb, "by "+a.By+": "+a.Reason)
			done.Station = adminapi.StoryStepStationAudit
			told.Steps = append(told.Steps, done)
		}
	}
	return told, nil
}

func (m mail) step(at time.Time, outcome, detail string) adminapi.StoryStep {
	return adminapi.StoryStep{
		At: at, Station: adminapi.StoryStepStationMail, Outcome: outcome, Detail: detail, EventID: m.EventID, Key: m.Key,
		CorrelationID: m.Correlation, Subject: m.ID,
	}
}
