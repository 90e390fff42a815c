package notification

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/engine/outbox"
)

// Mails is the mail list as an operator sees it: what is on it, and what to do about the mails that no sender will
// touch again by itself. Every change leaves an action of kind mail in engine/audit's table, in its own transaction.
type Mails struct {
	pool   *pgxpool.Pool
	outbox *outbox.Outbox
}

// NewMails gives the list in the pool's database.
func NewMails(pool *pgxpool.Pool, out *outbox.Outbox) *Mails { return &Mails{pool: pool, outbox: out} }

// MailState is where a mail is on its way.
type MailState string

// The states of a mail. Sent, failed and uncertain are left only by an operator's word.
const (
	MailPending    MailState = "pending"    // waits for a sender, or for its next attempt
	MailClaimed    MailState = "claimed"    // a sender has it; the mail server has not
	MailSubmitting MailState = "submitting" // the mail server may have it
	MailSent       MailState = "sent"       // the mail server took it, or an operator says so
	MailFailed     MailState = "failed"     // the mail server refused it for good, or too often
	MailUncertain  MailState = "uncertain"  // nobody knows whether the mail server took it
)
