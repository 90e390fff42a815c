package notification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/outbox"
)

// list is the mail table as senders use it. Every statement that moves a claimed row on names the claim's token and
// asks the database's clock, so that a sender whose claim has expired changes nothing, whatever its own clock says.
type list struct {
	pool   *pgxpool.Pool
	outbox *outbox.Outbox
	lease  time.Duration
}

// errClaimLost says that the row is somebody else's now. Nothing was changed.
var errClaimLost = errors.New("the claim on the mail has expired")

// SKIP LOCKED lets several senders claim side by side. A claim that expired before its sender submitted is as good as
// none: the server has not seen the mail.
const claimMail = `
update mail set state = 'claimed', attempts = attempts + 1, lease_token = $1, error = null,
                lease_until = clock_timestamp() + make_interval(secs => $2)
where id = (
    select id from mail
    where state = 'pending' and due_at <= clock_timestamp() or state = 'claimed' and lease_until <= clock_timestamp()
    order by due_at limit 1 for update skip locked)
returning id, event_id, template, user_id, recipient, name, attempts`

// claim takes the mail that has waited longest; ok is false when there is none.
func (l *list) claim(ctx context.Context) (m Mail, ok bool, err error) {
	m.token = uuid.New()
	err = l.pool.QueryRow(ctx, claimMail, m.token, l.lease.Seconds()).
		Scan(&m.ID, &m.EventID, &m.Template, &m.UserID, &m.Recipient, &m.Name, &m.Attempts)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return m, false, nil
	case err != nil:
		return m, false, fmt.Errorf("claim mail: %w", err)
	}
	return m, true, nil
}

const submitMail = `
update mail set state = 'submitting'
where id = $1 and lease_token = $2 and state = 'claimed'
  and lease_until > clock_timestamp() + make_interval(secs => $3)`

// submitting is the point of no return: from here on the server may have the mail. It demands that the lease outlives
// the time that sending may still take.
func (l *list) submitting(ctx context.Context, m Mail, sendTimeout time.Duration) error {
	return l.move(ctx, "mark mail submitting", submitMail, m.ID, m.token, sendTimeout.Seconds())
}

const releaseMail = `
update mail set state = 'pending', lease_token = null, lease_until = null, error = $3,
                due_at = clock_timestamp() + make_interval(secs => $4)
where id = $1 and lease_token = $2 and state in ('claimed', 'submitting')`

// release puts a mail back that the server certainly does not have, to be tried again after pause.
func (l *list) release(ctx context.Context, m Mail, reason string, pause time.Duration) error {
	return l.move(ctx, "release mail", releaseMail, m.ID, m.token, reason, pause.Seconds())
}

const endMail = `
update mail set state = $3, lease_token = null, lease_until = null, error = $4
where id = $1 and lease_token = $2 and state in ('claimed', 'submitting')`

// fail ends a mail that the server will never take; doubt ends one of which nobody knows whether it did.
func (l *list) fail(ctx context.Context, m Mail, reason string) error {
	return l.move(ctx, "mark mail failed", endMail, m.ID, m.token, "failed", reason)
}

func (l *list) doubt(ctx context.Context, m Mail, reason string) error {
	return l.move(ctx, "mark mail uncertain", endMail, m.ID, m.token, "uncertain", reason)
}

func (l *list) move(ctx context.Context, what, sql string, args ...any) error {
	tag, err := l.pool.Exec(ctx, sql, args...)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case tag.RowsAffected() == 0:
		return fmt.Errorf("%s: %w", what, errClaimLost)
	}
	return nil
}

const recordSent = `
update mail set state = 'sent', sent_at = $3, lease_token = null, lease_until = null, error = null
where id = $1 and lease_token = $2 and state = 'submitting'`

// sent records that the server took the mail over, and says so to the world, in one transaction.
func (l *list) sent(ctx context.Context, m Mail, at time.Time) error {
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, recordSent, m.ID, m.token, at)
		switch {
		case err != nil:
			return fmt.Errorf("record mail sent: %w", err)
		case tag.RowsAffected() == 0:
			return fmt.Errorf("record mail sent: %w", errClaimLost)
		}
		return announce(ctx, tx, l.outbox,
			domain.VerificationEmailSent{UserID: m.UserID, MailID: m.ID.String(), SentAt: at})
	})
	if err != nil {
		return err
	}
	l.outbox.Committed()
	fault.Here("notification.mail.recorded")
	return nil
}

const doubtExpired = `
update mail set state = 'uncertain', lease_token = null, lease_until = null,
                error = 'the sender vanished while the mail server may have taken the mail'
where state = 'submitting' and lease_until <= clock_timestamp()
returning id`

// doubtExpired marks the mails whose sender vanished while submitting and returns their ids.
func (l *list) doubtExpired(ctx context.Context) ([]uuid.UUID, error) {
	rows, err := l.pool.Query(ctx, doubtExpired)
	if err != nil {
		return nil, fmt.Errorf("mark expired mails uncertain: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("mark expired mails uncertain: %w", err)
	}
	return ids, nil
}
