package customer

import (
	"context"
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
	"example.com/twinbox/internal/event"
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
// The same key with the same command returns the first answer, with a different one [command.ErrKeyReused], and while
// the first still runs [command.ErrKeyInFlight]. A taken address is a [domain.CodeEmailTaken], an exhausted mailbox or
// client an allowanceError: the key stays free.
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

func (c *Commands) register(ctx context.Context, writes *pgx.Batch, s Signup) (answer command.Answer, err error) {
	id, at := uuid.Must(uuid.NewV7()).String(), now()
	user, registered := domain.Register(domain.UserID(id), s.Email, s.Name, at)
	e, err := event.New(contract.UserRegistered, user.Version, registered)
	if err != nil {
		return answer, err
	}
	queueInsert(writes, user)
	if err := c.Outbox.Queue(ctx, writes, e); err != nil {
		return answer, fmt.Errorf("add to outbox: %w", err)
	}
	c.queueAllowances(writes, s)
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
