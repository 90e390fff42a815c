package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/outbox"
)

const templateVerification = "verification"

const handlerVerification = "mail." + templateVerification

// Sender sends stored mails. Any number of senders may share them. [newSender] adds the runner.
type Sender struct {
	settings   lease.Settings
	pool       *pgxpool.Pool
	outbox     *outbox.Outbox
	writer     Writer
	smtp       *mail.Sender
	suspect    func() // the mail server may be away
	spans      *event.Spans
	log        *slog.Logger
	registerer prometheus.Registerer

	*lease.Runner
}

func newSender(s Sender) (_ *Sender, err error) {
	announce := func(ctx context.Context, tx pgx.Tx, c *lease.Claim, at time.Time) error {
		fault.Here("notification.mail.recording")
		return announceSent(ctx, tx, s.outbox, lease.Settled{EventID: c.EventID, At: at})
	}
	committed := func(*lease.Claim) {
		s.outbox.Committed()
		fault.Here("notification.mail.recorded")
	}
	s.Runner, err = lease.New(lease.Config{
		Handler: handlerVerification, Pool: s.pool, Settings: s.settings, Timeout: s.smtp.Config.Timeout,
		Effect: lease.Effect{
			Do: s.send, Done: announce, Committed: committed, Purged: deleteMailsOf,
			Timeout: s.smtp.Config.Timeout + mail.Margin,
		},
		Log: s.log, Registerer: s.registerer,
	})
	return &s, err
}

const readMail = `
select mail.id, mail.user_id, coalesce(contact.email, ''), coalesce(mail.correlation_id, mail.event_id),
    coalesce(mail.traceparent, ''), coalesce(mail.tracestate, '')
from mail left join contact using (user_id) where mail.event_id = $1 and mail.template = $2`

var errNoMail = errors.New("read mail: there is no such mail")

// send reads the mail now, for the contact's present address. The claim's clock is the database's.
func (s *Sender) send(ctx context.Context, c *lease.Claim) error {
	fault.Here("notification.mail.claimed")
	var m Mail
	var cause event.Cause
	err := s.pool.QueryRow(ctx, readMail, c.EventID, templateVerification).Scan(&m.ID, &m.UserID, &m.Recipient,
		&c.CorrelationID, &cause.TraceParent, &cause.TraceState)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return failure.AsPermanent(errNoMail)
	case err != nil:
		return fmt.Errorf("read mail: %w", err)
	case m.Recipient == "":
		return lease.Skip("the recipient is no longer a contact")
	}
	letter, err := s.writer.Write(m, c.At)
	if err != nil {
		return failure.AsPermanent(err)
	}
	end := s.spans.Call("send mail", cause)
	err = s.smtp.Submit(ctx, letter, c.Begin)
	end(err)
	if s.smtp.RecordOutcome(err) {
		s.suspect()
	}
	return err
}

const deleteMails = `delete from mail where template = $1 and event_id = any($2)`

// deleteMailsOf leaves no mail without its lease.
func deleteMailsOf(ctx context.Context, tx pgx.Tx, eventIDs []string) error {
	if _, err := tx.Exec(ctx, deleteMails, templateVerification, eventIDs); err != nil {
		return fmt.Errorf("delete mails: %w", err)
	}
	return nil
}

// The outbox locks keys in this order, so two calls for several mails cannot deadlock.
const readSent = `
select event_id, id::text, user_id, coalesce(correlation_id, event_id), coalesce(traceparent, ''),
    coalesce(tracestate, '')
from mail where template = $1 and event_id = any($2) order by user_id, event_id`

// announceSent runs in the transaction that stores the mails' state.
func announceSent(ctx context.Context, tx pgx.Tx, out *outbox.Outbox, sent ...lease.Settled) error {
	ids, at := make([]string, len(sent)), map[string]time.Time{}
	for i, s := range sent {
		ids[i], at[s.EventID] = s.EventID, s.At.UTC().Truncate(time.Microsecond)
	}
	rows, _ := tx.Query(ctx, readSent, templateVerification, ids)
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e event.Event, err error) {
		var data domain.VerificationEmailSent
		var c event.Cause
		err = row.Scan(&c.CausationID, &data.MailID, &data.UserID, &c.CorrelationID, &c.TraceParent, &c.TraceState)
		if err != nil {
			return e, err
		}
		data.SentAt = at[c.CausationID]
		e, err = event.New(contract.VerificationEmailSent, 0, data)
		e.Extensions = c.Extend(nil)
		return e, err
	})
	if err != nil {
		return fmt.Errorf("read sent mails: %w", err)
	}
	bus, err := out.EventBus(ctx, tx)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := bus.Publish(ctx, e); err != nil {
			return fmt.Errorf("announce sent mail: %w", err)
		}
	}
	return nil
}
