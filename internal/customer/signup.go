package customer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/frame/command"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
)

// signUpScope separates the idempotency keys of this command from those of others to come.
const signUpScope = "signup"

// Signup is what a person asks for, and who they are.
type Signup struct {
	Key    string // of the request, for its retries; empty: none
	Email  domain.Email
	Name   domain.Name
	Client string // whose allowance it uses; empty: nobody's
}

// SignUp stores a new user, the answer under its idempotency key and UserRegistered, all or nothing.
//
// The same key with the same command returns the same answer again without doing anything; with another command it
// returns [command.ErrKeyReused], and [command.ErrKeyInFlight] while the first is still running. An address that is
// taken is a [domain.CodeEmailTaken], and the key stays free. The empty key is none: each call is a signup of its own,
// and the repetition of one that worked finds its address taken. Where the mailbox or the client has no sign-up left it
// returns an allowanceError, and nothing is used up.
//
// It takes three round trips, each of which costs the database as much as a statement: begin and claim, the writes,
// commit.
func (c *Commands) SignUp(ctx context.Context, s Signup) (command.Answer, error) {
	fingerprint := sha256.Sum256([]byte(string(s.Email) + "\x00" + string(s.Name)))
	claim := command.Claim{Scope: signUpScope, Key: s.Key, Fingerprint: fingerprint[:]}
	claiming := &pgx.Batch{}
	if s.Key != "" {
		claim.Queue(claiming)
	}
	var answer command.Answer
	err := c.transaction(ctx, claiming, func(ctx context.Context, tx pgx.Tx) error {
		if s.Key != "" {
			given, found, err := claim.Given()
			if err != nil || found {
				answer = given
				return err
			}
		}
		writes := &pgx.Batch{}
		user, err := c.register(ctx, writes, s.Email, s.Name)
		if err != nil {
			return err
		}
		c.queueAllowances(writes, s)
		if answer, err = signedUp(user); err != nil {
			return err
		}
		if s.Key != "" {
			claim.Store(writes, answer, c.KeysFor)
		}
		if err := tx.SendBatch(ctx, writes).Close(); err != nil {
			return fmt.Errorf("store signup: %w", err)
		}
		return nil
	})
	if err != nil {
		return command.Answer{}, err
	}
	fault.Here("customer.signup.committed")
	return answer, nil
}

// register queues the new user and, behind it, the event.
func (c *Commands) register(
	ctx context.Context, writes *pgx.Batch, email domain.Email, name domain.Name,
) (domain.User, error) {
	id, err := newUserID()
	if err != nil {
		return domain.User{}, err
	}
	at := now()
	user, registered := domain.Register(id, email, name, at)
	event, err := contract.UserRegistered.New(string(id), user.Version, at, registered)
	if err != nil {
		return domain.User{}, err
	}
	queueInsert(writes, user)
	if err := c.Outbox.Queue(ctx, writes, event); err != nil {
		return domain.User{}, fmt.Errorf("add to outbox: %w", err)
	}
	return user, nil
}

func signedUp(user domain.User) (command.Answer, error) {
	body, err := json.Marshal(openapi.SignupResponse{
		UserId:  string(user.ID),
		Email:   string(user.Email),
		Status:  openapi.Status(user.Status),
		Version: user.Version,
	})
	if err != nil {
		return command.Answer{}, fmt.Errorf("encode signup answer: %w", err)
	}
	return command.Answer{Status: http.StatusCreated, Body: body}, nil
}
