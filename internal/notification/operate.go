package notification

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/lease"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/frame/eventing"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops"
	"example.com/twinbox/ops/admin"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/steps"
)

// mails is the mail list as an operator sees it: what is on it, and what to do about the mails that no sender will
// touch again by itself. Every change leaves an action of kind mail in engine/audit's table, in its own transaction.
type mails struct {
	pool   *pgxpool.Pool
	outbox *outbox.Outbox
}

var _ admin.Mails = mails{}

func offerOperations(node *eventing.Node) (prefix string, handler http.Handler, err error) {
	list := mails{node.Pool, node.Outbox}
	return ops.OfferWith(node, ops.Own{Mails: list, Tell: list.tell})
}

// A mail that is sent is one whose lease is done, unless a later one was begun in its place.
const mailState = `case when lease.superseded_by is not null then 'superseded' when lease.state = 'done' then 'sent'
    else lease.state end`

const listMails = `
select mail.id, ` + mailState + ` as state, mail.event_id, template, user_id,
       case when $6 then recipient end as recipient, attempts, nullif(error, '') as error, created_at, due_at,
       case lease.state when 'done' then ended_at end as sent_at
from mail join lease on lease.event_id = mail.event_id and lease.handler = 'mail.' || mail.template
where ($1 = '' or lease.state = case when $1 in ('sent', 'superseded') then 'done' else $1 end
        and (lease.superseded_by is not null) = ($1 = 'superseded'))
  and ($2 = '' or user_id = nullif($2, '')::uuid) and ($3 = '' or mail.event_id = $3)
  and ($4::timestamptz is null or created_at >= $4) and ($5::timestamptz is null or created_at < $5)
  and mail.id > coalesce(nullif($7, '')::uuid, '00000000-0000-0000-0000-000000000000')
order by mail.id limit $8`

// List returns a page, in the order in which the mails were listed.
func (m mails) List(ctx context.Context, q adminapi.ListMailsParams) ([]adminapi.Mail, error) {
	rows, _ := m.pool.Query(ctx, listMails, q.State, q.UserID, q.EventID, orNull(q.Since), orNull(q.Until),
		q.Recipient, q.After, q.Limit)
	listed, err := pgx.CollectRows(rows, pgx.RowToStructByName[adminapi.Mail])
	if err != nil {
		return nil, fmt.Errorf("list mails: %w", err)
	}
	return listed, nil
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Retry puts uncertain and failed mails back: pending, due at once, with a fresh count of attempts. The next attempt
// carries the same Message-ID. For an uncertain mail it is the operator who accepts that it may arrive twice. Calling
// it again changes nothing.
func (m mails) Retry(ctx context.Context, ids []string, c audit.Change) (audit.Result, error) {
	return m.settle(ctx, ids, c, settlement{
		verb: "retry", from: []adminapi.MailState{adminapi.Uncertain, adminapi.Failed}, to: adminapi.Pending,
		change: func(ctx context.Context, tx pgx.Tx, events []string) error {
			_, err := lease.Reopen(ctx, tx, handlerVerification, events)
			return err
		},
	})
}

// MarkSent settles uncertain mails of which the operator knows that the server took them: sent, and said so by the same
// VerificationEmailSent that a sender would have written.
func (m mails) MarkSent(ctx context.Context, ids []string, c audit.Change) (audit.Result, error) {
	result, err := m.settle(ctx, ids, c, settlement{
		verb: "mark_sent", from: []adminapi.MailState{adminapi.Uncertain}, to: adminapi.Sent,
		change: func(ctx context.Context, tx pgx.Tx, events []string) error {
			settled, err := lease.Settle(ctx, tx, handlerVerification, events)
			if err != nil {
				return err
			}
			return announceSent(ctx, tx, m.outbox, settled...)
		},
	})
	m.outbox.Committed()
	return result, err
}

// settlement is something an operator does to mails.
type settlement struct {
	verb   string
	from   []adminapi.MailState // the states in which it means something
	to     adminapi.MailState
	change func(ctx context.Context, tx pgx.Tx, events []string) error
}

const lockMails = `
select mail.id::text, mail.event_id, ` + mailState + `
from mail join lease on lease.event_id = mail.event_id and lease.handler = 'mail.' || mail.template
where mail.id = any($1::text[]::uuid[]) order by mail.id for update of lease`

type lockedMail struct {
	ID      string
	EventID string
	State   adminapi.MailState
}

// settle does one thing to all mails that are in a state for it, in one transaction with the rows that say so, and says
// of each that stays as it is why.
func (m mails) settle(
	ctx context.Context, ids []string, c audit.Change, s settlement,
) (result audit.Result, err error) {
	var found []lockedMail
	var events []string
	result.DryRun = c.DryRun
	err = pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, lockMails, ids)
		if found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[lockedMail]); err != nil {
			return err
		}
		var actions []audit.Action
		for _, mail := range found {
			if !slices.Contains(s.from, mail.State) {
				result.Fail(mail.ID, "mail_not_settled", "it is "+string(mail.State))
				continue
			}
			events = append(events, mail.EventID)
			actions = append(actions, c.Action(s.verb, "mail", mail.ID, string(mail.State), string(s.to)))
		}
		if c.DryRun || len(events) == 0 {
			return nil
		}
		if err := s.change(ctx, tx, events); err != nil {
			return err
		}
		return audit.Record(ctx, tx, actions...)
	})
	switch {
	case err != nil:
		return audit.Result{}, fmt.Errorf("%s mails: %w", s.verb, err)
	case len(found) == 0:
		return result, errNoMail
	}
	for _, id := range ids {
		if !slices.ContainsFunc(found, func(m lockedMail) bool { return m.ID == id }) {
			result.Fail(id, string(errNoMail.Code), "there is no such mail")
		}
	}
	result.Count = int64(len(events))
	return result, nil
}

var errNoMail = &web.Error{
	Status: http.StatusNotFound, Code: "mail_not_found", Detail: "There is no such mail.",
}

// Each of the conditions has an index. A mail under way has been so since its claim, which only its lease knows.
const selectStory = `
select mail.id::text, mail.event_id, mail.user_id::text, coalesce(mail.correlation_id, mail.event_id),
    ` + mailState + `, lease.attempts, mail.created_at, lease.ended_at,
    clock_timestamp()
from mail join lease on lease.event_id = mail.event_id and lease.handler = 'mail.' || mail.template
where mail.id = $1 or mail.user_id = $1 or mail.event_id = $2
order by mail.id limit 1000`

const selectContact = `select exists (select from contact where user_id = $1)`

// tell tells of users and of mails: when a mail was added, how far it is, and what operators did to it.
func (m mails) tell(ctx context.Context, id string) (told admin.Told, err error) {
	var parsed *uuid.UUID
	if u, err := uuid.Parse(id); err == nil {
		parsed = &u
		var known bool
		if err := m.pool.QueryRow(ctx, selectContact, u).Scan(&known); err != nil {
			return told, fmt.Errorf("read contact: %w", err)
		}
		if known {
			told.Kind = adminapi.StoryKindUser
		}
	}
	rows, _ := m.pool.Query(ctx, selectStory, parsed, id)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[steps.Mail])
	if err != nil {
		return told, fmt.Errorf("read mails: %w", err)
	}
	for _, mail := range found {
		if mail.ID == id {
			told.Kind = adminapi.StoryKindMail
		}
		told.Steps = append(told.Steps, mail.Steps()...)
		told.Related = append(told.Related, mail.EventID)
		actions, err := audit.Of(ctx, m.pool, "mail", mail.ID)
		if err != nil {
			return told, err
		}
		for _, a := range actions {
			done := mail.Owed()
			done.At, done.Station, done.Outcome = a.At, adminapi.StoryStepStationAudit, a.Verb
			done.Detail = "by " + a.By + ": " + a.Reason
			told.Steps = append(told.Steps, done)
		}
	}
	return told, nil
}
