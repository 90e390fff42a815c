package customer

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Allowances limit the accepted sign-ups of all instances. 0 means no limit.
type Allowances struct {
	PerMailbox int // per day; see [domain.Email.Mailbox]
	PerClient  int // per hour
}

const (
	mailboxPeriod = 24 * time.Hour
	clientPeriod  = time.Hour
)

type allowanceError struct {
	of   string // the request's field "email", for its mailbox, or "client"
	wait time.Duration
}

func (e *allowanceError) Error() string { return "no sign-up left for this " + e.of }

// queueAllowances takes the client's before the mailbox's, or two transactions that share both could deadlock.
func (c *Commands) queueAllowances(writes *pgx.Batch, s Signup) {
	if c.Allowances.PerClient > 0 && s.Client != "" {
		c.queueAllowance(writes, "client", s.Client, clientPeriod, c.Allowances.PerClient)
	}
	if c.Allowances.PerMailbox > 0 {
		c.queueAllowance(writes, "email", s.Email.Mailbox(), mailboxPeriod, c.Allowances.PerMailbox)
	}
}

// N sign-ups may come together, then one per share of the period. A refused sign-up rolls its share back.
// The clock is read under the row's lock: of two statements, the later one may get it first.
const takeAllowance = `
insert into signup_allowance as a (id, used_until) values ($1, clock_timestamp() + make_interval(secs => $2))
on conflict (id) do update
set used_until = greatest(a.used_until, clock_timestamp()) + make_interval(secs => $2)
returning extract(epoch from used_until - clock_timestamp())::float8`

// The id is an HMAC, so the table holds no address. A new VERIFICATION_SECRET forgets all allowances.
func (c *Commands) queueAllowance(batch *pgx.Batch, of, subject string, period time.Duration, limit int) {
	id := hmac.New(sha256.New, c.Links)
	id.Write([]byte("twinbox signup allowance\x00" + of + "\x00" + subject))
	share := (period / time.Duration(limit)).Truncate(time.Microsecond) // PostgreSQL's, so limit shares fit the period
	batch.Queue(takeAllowance, id.Sum(nil), share.Seconds()).QueryRow(func(row pgx.Row) error {
		var used float64
		if err := row.Scan(&used); err != nil {
			return fmt.Errorf("count sign-up: %w", err)
		}
		if wait := time.Duration(used*float64(time.Second)) - period; wait > 0 {
			return &allowanceError{of, wait}
		}
		return nil
	})
}

const deleteUnusedAllowances = `
delete from signup_allowance where id in (
    select id from signup_allowance where used_until <= clock_timestamp() limit $1 for update skip locked)`
