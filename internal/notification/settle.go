package notification

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/lease"
)

// ErrNoAuthor is returned by [Mails.Retry] and [Mails.MarkSent] for an action without a name or a reason.
var ErrNoAuthor = errors.New("action_incomplete: who does it and why are both needed")

// NotSettledError lists the mails of a call that stayed as they are. The others of the call are settled.
type NotSettledError struct {
	Missing []uuid.UUID             // there is no such mail
	Refused map[uuid.UUID]MailState // the mail is in this state, in which the action means nothing
}

func (e *NotSettledError) Error() string {
	return fmt.Sprintf("mail_not_settled: %d unknown, %d in another state", len(e.Missing), len(e.Refused))
}

// Retry puts uncertain and failed mails back: pending, due at once, with a fresh count of attempts. The next attempt
// carries the same Message-ID. For an uncertain mail it is the operator who accepts that it may arrive twice.
//
// It returns how many it put back; a [*NotSettledError] says which it did not. Calling it again changes nothing.
func (m *Mails) Retry(ctx context.Context, ids []uuid.UUID, by, reason string) (n int, err error) {
	return m.settle(ctx, ids, action{
		verb: "retry", by: by, reason: reason, from: []MailState{MailUncertain, MailFailed}, to: MailPending,
	},
		func(ctx context.Context, tx pgx.Tx, events []string) error {
			_, err := lease.Reopen(ctx, tx, handlerVerification, events)
			return err
		})
}

// MarkSent settles uncertain mails of which the operator knows that the server took them: sent, and said so by the same
// VerificationEmailSent that a sender would have written. It returns what [Mails.Retry] does.
func (m *Mails) MarkSent(ctx context.Context, ids []uuid.UUID, by, reason string) (n int, err error) {
	n, err = m.settle(ctx, ids, action{
		verb: "mark_sent", by: by, reason: reason, from: []MailState{MailUncertain}, to: MailSent,
	},
		func(ctx context.Context, tx pgx.Tx, events []string) error {
			settled, err := lease.Settle(ctx, tx, handlerVerification, events)
			if err != nil {
				return err
			}
			return announceSent(ctx, tx, m.outbox, settled...)
		})
	if n > 0 {
		m.outbox.Committed()
	}
	return n, err
}

// action is something an operator does to mails.
type action struct {
	verb, by, reason string
	from             []MailState // the states in which it means something
	to               MailState
}

// settle does one thing to all mails that are in a state for it, in one transaction with the rows that say so.
func (m *Mails) settle(
	ctx context.Context, ids []uuid.UUID, a action, change func(ctx context.Context, tx pgx.Tx, events []string) error,
) (n int, err error) {
	if strings.TrimSpace(a.by) == "" || strings.TrimSpace(a.reason) == "" {
		return 0, ErrNoAuthor
	}
	var found []lockedMail
	var left *NotSettledError
	err = pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		if found, left, err = lock(ctx, tx, ids, a.from); err != nil || len(found) == 0 {
			return err
		}
		events, actions := make([]string, len(found)), make([]audit.Action, len(found))
		for i, mail := range found {
			events[i] = mail.EventID
			actions[i] = audit.Action{
				By: a.by, Verb: a.verb, Kind: "mail", Subject: mail.ID.String(), Reason: a.reason,
				Before: string(mail.State), After: string(a.to),
			}
		}
		return errors.Join(change(ctx, tx, events), audit.Record(ctx, tx, actions...))
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s mails: %w", a.verb, err)
	case left != nil:
		return len(found), left
	}
	return len(found), nil
}

type lockedMail struct {
	ID      uuid.UUID
	EventID string
	State   MailState
}

const lockMails = `
select mail.id, mail.event_id, case lease.state when 'done' then 'sent' else lease.state end
from mail join lease on lease.event_id = mail.event_id and lease.handler = 'mail.' || mail.template
where mail.id = any($1) order by mail.id for update of lease`

// sort says how many of the mails are in one of the states and which are not, and changes nothing.
func (m *Mails) sort(ctx context.Context, ids []uuid.UUID, from []MailState) (n int, left *NotSettledError, err error) {
	err = pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		var found []lockedMail
		found, left, err = lock(ctx, tx, ids, from)
		n = len(found)
		return err
	})
	return n, left, err
}

// lock locks the mails and sorts out those that are not in one of the states.
func lock(
	ctx context.Context, tx pgx.Tx, ids []uuid.UUID, from []MailState,
) (found []lockedMail, left *NotSettledError, err error) {
	rows, err := tx.Query(ctx, lockMails, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("lock mails: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[lockedMail])
	if err != nil {
		return nil, nil, fmt.Errorf("lock mails: %w", err)
	}
	left = &NotSettledError{Refused: map[uuid.UUID]MailState{}}
	known := map[uuid.UUID]bool{}
	for _, mail := range all {
		known[mail.ID] = true
		if slices.Contains(from, mail.State) {
			found = append(found, mail)
		} else {
			left.Refused[mail.ID] = mail.State
		}
	}
	for _, id := range ids {
		if !known[id] {
			left.Missing = append(left.Missing, id)
		}
	}
	if len(left.Missing) == 0 && len(left.Refused) == 0 {
		left = nil
	}
	return found, left, nil
}
