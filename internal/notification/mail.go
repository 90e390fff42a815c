package notification

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/internal/domain"
)

const templateVerification = "verification"

// Mail is a row of the list, as its claimant sees it.
type Mail struct {
	ID        uuid.UUID
	EventID   string
	Template  string
	UserID    domain.UserID
	Recipient domain.Email
	Name      domain.Name
	Attempts  int

	token uuid.UUID // of the claim; every statement that moves the row on repeats it
}

// Letter is a mail written out, ready for SMTP.
type Letter struct {
	MessageID string // the same for every attempt, so that a receiver can tell a second copy
	To        domain.Email
	Subject   string
	Text      string
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
func (w Writer) Write(m Mail, now time.Time) (Letter, error) {
	if m.Template != templateVerification {
		return Letter{}, fmt.Errorf("write mail: no template %q", m.Template)
	}
	expires := now.Add(w.LinksFor)
	token, err := w.Links.Sign(m.UserID, m.Recipient, expires)
	if err != nil {
		return Letter{}, fmt.Errorf("sign link: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Hello %s,\n\n", m.Name)
	fmt.Fprintf(&text, "please confirm that this is your address by following this link:\n\n")
	fmt.Fprintf(&text, "%s/v1/verifications?token=%s\n\n", w.PublicURL, token)
	fmt.Fprintf(&text, "It works until %s. ", expires.UTC().Format("2 January 2006, 15:04 MST"))
	fmt.Fprintf(&text, "If you did not sign up, do nothing: the address stays unconfirmed.\n")
	return Letter{
		MessageID: m.ID.String() + "@" + w.Host,
		To:        m.Recipient,
		Subject:   "Please confirm your address",
		Text:      text.String(),
	}, nil
}
