package customer

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/domain"
)

// Allowances are how many sign-ups are accepted, over all instances of the service. Each of them has a mail sent to an
// address that its sender may not own. 0 means no limit.
type Allowances struct {
	PerMailbox int // and day; see [domain.Email.Mailbox]
	PerClient  int // and hour
}

const (
	mailboxPeriod = 24 * time.Hour
	clientPeriod  = time.Hour
)

// allowanceError says that the sign-ups of a mailbox or of a client are used up for a while.
type allowanceError struct {
	field string // of the request, empty for the client
	wait  time.Duration
}

func (e *allowanceError) Error() string {
	return fmt.Sprintf("no sign-up left for this %s", e.subject())
}

func (e *allowanceError) subject() string {
	if e.field == "email" {
		return "mailbox"
	}
	return "client"
}

// The row is the only state: N sign-ups at once are accepted where N are allowed per period, and then one whenever its
// share of the period has passed. The row's lock makes it exact across instances, and a sign-up that is refused or
// fails rolls its share back. statement_timestamp is one value throughout the statement, which the clock is not.
const takeAllowance = `
insert into signup_allowance as a (id, used_until) values ($1, statement_timestamp() + make_interval(secs => $2))
on conflict (id) do update
set used_until = greatest(a.used_until, statement_timestamp()) + make_interval(secs => $2)
returning extract(epoch from used_until - statement_timestamp())::float8`

// queueAllowances adds what counts a sign-up to a batch, whose error it is if there is none left. The client comes
// before the mailbox in every transaction, so two that share both do not wait for each other in a circle.
func (c *Commands) queueAllowances(batch *pgx.Batch, s Signup) {
	if c.Allowances.PerClient > 0 && s.Client != "" {
		c.queueAllowance(batch, "client", s.Client, clientPeriod, c.Allowances.PerClient)
	}
	if c.Allowances.PerMailbox > 0 {
		c.queueAllowance(batch, "email", s.Email.Mailbox(), mailboxPeriod, c.Allowances.PerMailbox)
	}
}

func (c *Commands) queueAllowance(batch *pgx.Batch, kind, subject string, period time.Duration, limit int) {
	share := (period / time.Duration(limit)).Truncate(time.Microsecond) // PostgreSQL's: limit shares fit the period
	batch.Queue(takeAllowance, allowanceID(c.Links, kind, subject), share.Seconds()).QueryRow(func(row pgx.Row) error {
		var used float64
		if err := row.Scan(&used); err != nil {
			return fmt.Errorf("count sign-up: %w", err)
		}
		wait := time.Duration(used*float64(time.Second)) - period
		if wait <= 0 {
			return nil
		}
		refused := &allowanceError{wait: wait}
		if kind == "email" {
			refused.field = kind
		}
		return refused
	})
}

// allowanceID is what a mailbox or a client is called in the table.
func allowanceID(key domain.VerificationKey, kind, subject string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("twinbox signup allowance\x00" + kind + "\x00" + subject))
	return h.Sum(nil)
}

// Rows that say nothing any more.
const deleteUnusedAllowances = `
delete from signup_allowance where id in (
    select id from signup_allowance where used_until <= clock_timestamp() limit 1000 for update skip locked)`
