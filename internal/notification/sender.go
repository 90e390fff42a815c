package notification

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/lease"
	"example.com/twinbox/engine/outbox"
	"example.com/twinbox/frame/smtp"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/domain"
)

// senderSetup is what a sender needs. All fields but spans are required.
type senderSetup struct {
	settings   lease.Settings
	pool       *pgxpool.Pool
	outbox     *outbox.Outbox
	writer     Writer
	smtp       *smtp.Sender
	suspect    func()            // is told that the mail server may be away
	spans      *cloudevent.Spans // part: observability
	log        *slog.Logger
	registerer prometheus.Registerer
}

// Sender takes mails off the list and hands them to the mail server: the effect of a lease. Any number of senders may
// run on one list.
type Sender struct {
	*lease.Runner
	setup  senderSetup
	leases *lease.Leases
}

func newSender(setup senderSetup) (*Sender, error) {
	leases, err := lease.New(lease.Config{
		Handler: handlerVerification, Pool: setup.pool, Settings: setup.settings,
		Timeout: setup.smtp.Config.Timeout, Registerer: setup.registerer,
	})
	if err != nil {
		return nil, err
	}
	s := &Sender{setup: setup, leases: leases}
	s.Runner = lease.NewRunner(leases, lease.Effect{
		Do: s.send, Done: s.announce, Committed: s.committed, Purged: purged, Timeout: setup.smtp.Config.Timeout + margin,
	}, setup.log)
	return s, nil
}

// send makes one attempt. The clock of the claim, the database's, dates the letter and its link.
func (s *Sender) send(ctx context.Context, c *lease.Claim) error {
	fault.Here("notification.mail.claimed")
	m, err := readVerification(ctx, s.setup.pool, c.EventID)
	if err != nil {
		return err
	}
	c.CorrelationID = m.CorrelationID
	letter, err := s.setup.writer.Write(m, c.At)
	if err != nil {
		return failure.AsPermanent(err)
	}
	end := s.setup.spans.Call("send mail", m.Trace) // part: observability
	err = s.setup.smtp.Submit(ctx, letter, c.Begin)
	end(err) // part: observability
	if s.setup.smtp.Heard(err) {
		s.setup.suspect()
	}
	return err
}

// announce tells the world, in the transaction that records the mail as sent.
func (s *Sender) announce(ctx context.Context, tx pgx.Tx, c *lease.Claim, at time.Time) error {
	fault.Here("notification.mail.recording")
	return announceSent(ctx, tx, s.setup.outbox, lease.Settled{EventID: c.EventID, At: at})
}

func (s *Sender) committed(*lease.Claim) {
	s.setup.outbox.Committed()
	fault.Here("notification.mail.recorded")
}

const deleteMails = `delete from mail where template = $1 and event_id = any($2)`

// purged removes the mails whose leases are removed, so that none is left that no sender knows of.
func purged(ctx context.Context, tx pgx.Tx, eventIDs []string) error {
	if _, err := tx.Exec(ctx, deleteMails, templateVerification, eventIDs); err != nil {
		return fmt.Errorf("delete mails: %w", err)
	}
	return nil
}

const readSent = `
select event_id, id::text, user_id, coalesce(correlation_id, event_id), coalesce(traceparent, ''),
    coalesce(tracestate, '')
from mail where template = $1 and event_id = any($2)`

// announceSent adds what the world is told of mails that were sent: each event follows from the one that the mail was
// owed for.
func announceSent(ctx context.Context, tx pgx.Tx, out *outbox.Outbox, sent ...lease.Settled) error {
	ids, at := make([]string, len(sent)), map[string]time.Time{}
	for i, s := range sent {
		ids[i], at[s.EventID] = s.EventID, s.At.UTC().Truncate(time.Microsecond)
	}
	rows, _ := tx.Query(ctx, readSent, templateVerification, ids)
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (event cloudevent.Event, err error) {
		var e domain.VerificationEmailSent
		var c cloudevent.Cause
		err = row.Scan(&c.CausationID, &e.MailID, &e.UserID, &c.CorrelationID, &c.TraceParent, &c.TraceState)
		if err != nil {
			return event, err
		}
		e.SentAt = at[c.CausationID]
		event, err = contract.VerificationEmailSent.New(string(e.UserID), 0, e.SentAt, e)
		event.Extensions = c.Extend(nil)
		return event, err
	})
	if err != nil {
		return fmt.Errorf("read sent mails: %w", err)
	}
	if _, err := out.Add(ctx, tx, events...); err != nil {
		return fmt.Errorf("add to outbox: %w", err)
	}
	return nil
}
