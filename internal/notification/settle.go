package notification

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/outbox"
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
	return m.settle(ctx, ids, action{name: "retry", by: by, reason: reason, from: []MailState{MailUncertain, MailFailed}},
		func(ctx context.Context, tx pgx.Tx, found []uuid.UUID) error {
			_, err := tx.Exec(ctx, retryMails, found)
			return err
		})
}

const retryMails = `
update mail set state = 'pending', attempts = 0, due_at = clock_timestamp(), lease_token = null, lease_until = null
where id = any($1)`

// MarkSent settles uncertain mails of which the operator knows that the server took them: sent, and said so by the same
// VerificationEmailSent that a sender would have written. It returns what [Mails.Retry] does.
func (m *Mails) MarkSent(ctx context.Context, ids []uuid.UUID, by, reason string) (n int, err error) {
	n, err = m.settle(ctx, ids, action{name: "mark_sent", by: by, reason: reason, from: []MailState{MailUncertain}},
		func(ctx context.Context, tx pgx.Tx, found []uuid.UUID) error {
			rows, err := tx.Query(ctx, markMailsSent, found)
			if err != nil {
				return err
			}
			sent, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e domain.VerificationEmailSent, err error) {
				return e, row.Scan(&e.MailID, &e.UserID, &e.SentAt)
			})
			if err != nil {
				return err
			}
			return announce(ctx, tx, m.outbox, sent...)
		})
	if n > 0 {
		m.outbox.Committed()
	}
	return n, err
}

const markMailsSent = `
update mail set state = 'sent', sent_at = clock_timestamp(), lease_token = null, lease_until = null, error = null
where id = any($1) returning id::text, user_id, sent_at`

// announce adds what the world is told of mails that were sent.
func announce(ctx context.Context, tx pgx.Tx, out *outbox.Outbox, sent ...domain.VerificationEmailSent) error {
	events := make([]outbox.Event, len(sent))
	for i, e := range sent {
		e.SentAt = e.SentAt.UTC().Truncate(time.Microsecond)
		event, err := contract.NewEvent(ctx, e, string(e.UserID), 0, e.SentAt)
		if err != nil {
			return err
		}
		events[i] = event
	}
	if _, err := out.Add(ctx, tx, events...); err != nil {
		return fmt.Errorf("add to outbox: %w", err)
	}
	return nil
}

// action is something an operator does to mails.
type action struct {
	name, by, reason string
	from             []MailState // the states in which it means something
}

const lockMails = `select id, state from mail where id = any($1) order by id for update`

const recordAction = `
insert into mail_action (mail_id, action, from_state, by, reason)
select id, $2, state, $3, $4 from mail where id = any($1)`

// settle does one thing to all mails that are in a state for it, in one transaction with the rows that say so.
func (m *Mails) settle(
	ctx context.Context, ids []uuid.UUID, a action, change func(context.Context, pgx.Tx, []uuid.UUID) error,
) (n int, err error) {
	if strings.TrimSpace(a.by) == "" || strings.TrimSpace(a.reason) == "" {
		return 0, ErrNoAuthor
	}
	var found []uuid.UUID
	var left *NotSettledError
	err = pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		if found, left, err = lock(ctx, tx, ids, a.from); err != nil || len(found) == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, recordAction, found, a.name, a.by, a.reason); err != nil {
			return fmt.Errorf("record action: %w", err)
		}
		return change(ctx, tx, found)
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s mails: %w", a.name, err)
	case left != nil:
		return len(found), left
	}
	return len(found), nil
}

// lock locks the mails and sorts out those that are not in one of the states.
func lock(ctx context.Context, tx pgx.Tx, ids []uuid.UUID, from []MailState) ([]uuid.UUID, *NotSettledError, error) {
	rows, err := tx.Query(ctx, lockMails, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("lock mails: %w", err)
	}
	states := map[uuid.UUID]MailState{}
	var id uuid.UUID
	var state MailState
	if _, err := pgx.ForEachRow(rows, []any{&id, &state}, func() error {
		states[id] = state
		return nil
	}); err != nil {
		return nil, nil, fmt.Errorf("lock mails: %w", err)
	}
	var found []uuid.UUID
	left := &NotSettledError{Refused: map[uuid.UUID]MailState{}}
	for _, id := range ids {
		state, known := states[id]
		switch {
		case !known:
			left.Missing = append(left.Missing, id)
		case !slices.Contains(from, state):
			left.Refused[id] = state
		case !slices.Contains(found, id):
			found = append(found, id)
		}
	}
	if len(left.Missing) == 0 && len(left.Refused) == 0 {
		left = nil
	}
	return found, left, nil
}
