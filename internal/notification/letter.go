package notification

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/mail"
)

// Mail is a mail to send.
type Mail struct {
	ID        uuid.UUID
	UserID    domain.UserID
	Recipient domain.Email
}

// Writer writes letters.
type Writer struct {
	Links     domain.VerificationKey
	PublicURL string // without a slash at the end
	LinksFor  time.Duration
	Host      string // of Message-IDs
}

const letterText = `Hello,

this address was given at a sign-up. To confirm that it is yours, open this page
and press the button on it:

%s/v1/verifications?token=%s

It works until %s. If you did not sign up, do nothing: the address stays unconfirmed.
`

// Write makes the letter of a mail. No database holds its link.
func (w Writer) Write(m Mail, now time.Time) (mail.Letter, error) {
	expires := now.Add(w.LinksFor)
	token, err := w.Links.Sign(m.UserID, m.Recipient, expires)
	if err != nil {
		return mail.Letter{}, fmt.Errorf("sign link: %w", err)
	}
	return mail.Letter{
		MessageID: m.ID.String() + "@" + w.Host,
		To:        string(m.Recipient),
		Subject:   "Please confirm your address",
		Text:      fmt.Sprintf(letterText, w.PublicURL, token, expires.UTC().Format("2 January 2006, 15:04 MST")),
		WrittenAt: now,
	}, nil
}
