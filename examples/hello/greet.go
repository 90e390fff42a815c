package hello

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/hello/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/web"
)

type greeter struct {
	outbox *outbox.Outbox
	word   string
}

const insertGreeting = `insert into greeting (id, text, said_at) values ($1, $2, $3)`

// greet stores a greeting and its event in the caller's transaction.
func (g *greeter) greet(ctx context.Context, tx pgx.Tx, name string) (contract.HelloGreeting, error) {
	said := contract.HelloGreeting{
		GreetingID: uuid.Must(uuid.NewV7()).String(), Text: g.word + ", " + name + "!",
		SaidAt: time.Now().UTC().Truncate(time.Microsecond),
	}
	if _, err := tx.Exec(ctx, insertGreeting, said.GreetingID, said.Text, said.SaidAt); err != nil {
		return said, fmt.Errorf("insert greeting: %w", err)
	}
	e, err := event.New(contract.HelloSaid, 0, said)
	if err != nil {
		return said, err
	}
	if _, err := g.outbox.Add(ctx, tx, e); err != nil {
		return said, fmt.Errorf("add to outbox: %w", err)
	}
	return said, nil
}

// welcome greets a person who signed up. It is a plain Watermill handler, in the transaction that records the event's
// id, so a duplicate greets nobody.
func (g *greeter) welcome(msg *message.Message) error {
	tx, _ := inbox.TxFromContext(msg.Context())
	e, _ := inbox.EventFromContext(msg.Context())
	user, err := contract.UserRegistered.Decode(e)
	if err != nil {
		return inbox.Permanent(err)
	}
	_, err = g.greet(msg.Context(), tx, string(user.Name))
	return err
}

type api struct {
	greeter     *greeter
	transaction command.Transaction
}

type sayRequest struct {
	Name string `json:"name"`
}

const longestName = 200

func (s sayRequest) check() error {
	isControl := strings.ContainsFunc(s.Name, unicode.IsControl)
	if s.Name != "" && s.Name == strings.TrimSpace(s.Name) && !isControl && utf8.RuneCountInString(s.Name) <= longestName {
		return nil
	}
	return web.MemberError(http.StatusUnprocessableEntity, "invalid_name", "name", "is not a line of 1 to 200 characters")
}

// say is POST /v1/greetings.
func (a *api) say(w http.ResponseWriter, r *http.Request) {
	body, err := web.Decode[sayRequest](w, r)
	if err == nil {
		err = body.check()
	}
	var said contract.HelloGreeting
	if err == nil {
		err = a.transaction.Run(r.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
			said, err = a.greeter.greet(ctx, tx, body.Name)
			return err
		})
	}
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	a.greeter.outbox.Committed()
	web.WriteJSON(w, r, http.StatusCreated, said)
}
