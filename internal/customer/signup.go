package customer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/fault"
)

// Signup is a person's request to sign up.
type Signup struct {
	Key    string // for retries; empty: none
	Email  domain.Email
	Name   domain.Name
	Client string // whose allowance it uses; empty: none
}

// SignUp stores a new user, its UserRegistered and the answer under the idempotency key, all or nothing.
//
// The same key with the same command returns the first answer, with another one [command.ErrKeyReused], and while the
// first still runs [command.ErrKeyInFlight]. A taken address is a [domain.CodeEmailTaken], an exhausted mailbox or
// client an allowanceError. Both leave the key free and use no allowance.
func (c *Commands) SignUp(ctx context.Context, s Signup) (command.Answer, error) {
	fingerprint := sha256.Sum256([]byte(string(s.Email) + "\x00" + string(s.Name)))
	claim := command.Claim{Scope: "signup", Key: s.Key, Fingerprint: fingerprint[:]}
	answer, err := c.transaction().Once(ctx, claim, c.KeysFor,
		func(ctx context.Context, _ pgx.Tx, writes *pgx.Batch) (command.Answer, error) {
			return c.register(ctx, writes, s)
		})
	if err == nil {
		c.Outbox.Committed()
		fault.Here("customer.signup.committed")
	}
	return answer, err
}

// Always the client before the mailbox, or two transactions that share both could deadlock.
func (c *Commands) register(ctx context.Context, writes *pgx.Batch, s Signup) (answer command.Answer, err error) {
	id, err := uuid.NewV7()
	if err != nil {
		return answer, fmt.Errorf("make user id: %w", err)
	}
	at := now()
	user, registered := domain.Register(domain.UserID(id.String()), s.Email, s.Name, at)
	event, err := contract.UserRegistered.New(id.String(), user.Version, at, registered)
	if err != nil {
		return answer, err
	}
	queueInsert(writes, user)
	if err := c.Outbox.Queue(ctx, writes, event); err != nil {
		return answer, fmt.Errorf("add to outbox: %w", err)
	}
	if c.Allowances.PerClient > 0 && s.Client != "" {
		c.queueAllowance(writes, "client", s.Client, clientPeriod, c.Allowances.PerClient)
	}
	if c.Allowances.PerMailbox > 0 {
		c.queueAllowance(writes, "email", s.Email.Mailbox(), mailboxPeriod, c.Allowances.PerMailbox)
	}
	answer.Status = http.StatusCreated
	answer.Body, err = json.Marshal(openapi.SignupResponse{
		UserId: string(user.ID), Email: string(user.Email), Status: openapi.Status(user.Status), Version: user.Version,
	})
	return answer, err
}

// now is as precise as PostgreSQL.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

const insertUser = `
insert into users (id, email, email_key, name, status, registered_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (email_key) do nothing`

// queueInsert waits for a concurrent signup of the address.
func queueInsert(batch *pgx.Batch, u domain.User) {
	batch.Queue(insertUser, string(u.ID), u.Email, u.Email.Key(), u.Name, u.Status, u.RegisteredAt).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return &domain.Error{Code: domain.CodeEmailTaken, Field: "email", Message: "belongs to another customer"}
			}
			return nil
		})
}

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
