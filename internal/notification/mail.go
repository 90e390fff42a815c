package notification

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/failure"
	"example.com/twinbox/frame/smtp"
	"example.com/twinbox/internal/domain"
)

const templateVerification = "verification"

// handlerVerification names the leases of verification mails.
const handlerVerification = "mail." + templateVerification

// Mail is what is to be sent to whom.
type Mail struct {
	ID        uuid.UUID
	UserID    domain.UserID
	Recipient domain.Email

	CorrelationID string
	Trace         cloudevent.Cause // of its event; the trace alone
}

const readMail = `
select mail.id, mail.user_id, contact.email, coalesce(mail.correlation_id, mail.event_id),
    coalesce(mail.traceparent, ''), coalesce(mail.tracestate, '')
from mail join contact using (user_id) where mail.event_id = $1 and mail.template = $2`

var errNoRecipient = errors.New("read mail: there is no such mail, or it has no recipient")

// readVerification reads an event's mail when it is about to be sent, so that it goes to the address that the
// contact has now. A contact that is gone gets no mail.
func readVerification(ctx context.Context, pool *pgxpool.Pool, eventID string) (m Mail, err error) {
	err = pool.QueryRow(ctx, readMail, eventID, templateVerification).Scan(&m.ID, &m.UserID, &m.Recipient,
		&m.CorrelationID, &m.Trace.TraceParent, &m.Trace.TraceState)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return m, failure.AsPermanent(errNoRecipient)
	case err != nil:
		return m, fmt.Errorf("read mail: %w", err)
	}
	return m, nil
}

// Writer writes letters.
type Writer struct {
	Links     domain.VerificationKey
	PublicURL string // of the Customer API, without a slash at the end
	LinksFor  time.Duration
	Host      string // right-hand side of Message-IDs
}

// Write makes the letter of a mail. The link is signed here and not when the mail was put on the list: it lives from
// when it is sent, and no database holds it.
func (w Writer) Write(m Mail, now time.Time) (smtp.Letter, error) {
	expires := now.Add(w.LinksFor)
	token, err := w.Links.Sign(m.UserID, m.Recipient, expires)
	if err != nil {
		return smtp.Letter{}, fmt.Errorf("sign link: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Hello,\n\nthis address was given at a sign-up. To confirm that it is yours, open this page\n")
	fmt.Fprintf(&text, "and press the button on it:\n\n")
	fmt.Fprintf(&text, "%s/v1/verifications?token=%s\n\n", w.PublicURL, token)
	fmt.Fprintf(&text, "It works until %s. ", expires.UTC().Format("2 January 2006, 15:04 MST"))
	fmt.Fprintf(&text, "If you did not sign up, do nothing: the address stays unconfirmed.\n")
	return smtp.Letter{
		MessageID: m.ID.String() + "@" + w.Host,
		To:        string(m.Recipient),
		Subject:   "Please confirm your address",
		Text:      text.String(),
		WrittenAt: now,
	}, nil
}
