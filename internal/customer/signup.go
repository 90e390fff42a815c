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
	Client string // whose allowance it uses; empty: none
}

// SignUp stores a new user, the answer under its idempotency key and UserRegistered, all or nothing.
//
// The same key with the same command returns the same answer again without doing anything; with another command it
// returns [command.ErrKeyReused], and [command.ErrKeyInFlight] while the first is still running. An address that is
// taken is a [domain.CodeEmailTaken], and the key stays free. The empty key is none: each call is a signup of its own,
// and the repetition of one that worked finds its address taken. Where the mailbox or the client has no sign-up left it
// returns an allowanceError, and nothing is used up. It takes the three round trips of [command.Transaction.Once].
func (c *Commands) SignUp(ctx context.Context, s Signup) (command.Answer, error) {
	fingerprint := sha256.Sum256([]byte(string(s.Email) + "\x00" + string(s.Name)))
	claim := command.Claim{Scope: signUpScope, Key: s.Key, Fingerprint: fingerprint[:]}
	whole := command.Transaction{Pool: c.Pool, Timeout: c.Timeout}
	do := func(ctx context.Context, _ pgx.Tx, writes *pgx.Batch) (command.Answer, error) {
		user, err := c.register(ctx, writes, s.Email, s.Name)
		if err != nil {
			return command.Answer{}, err
		}
		c.queueAllowances(writes, s)
		return signedUp(user)
	}
	answer, err := whole.Once(ctx, claim, c.KeysFor, do)
	if err != nil {
		return command.Answer{}, err
	}
	c.Outbox.Committed()
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
