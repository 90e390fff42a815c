// Package payments is an example of a service that only writes events. It acts as a payment provider: it reports a
// payment that a client asks for, now or later, once or several times.
package payments

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/migrations"
)

var Service = eventing.Service[Config]{
	Name:       "payments",
	Source:     contract.SourcePayments,
	Contract:   contract.Load,
	API:        openAPI,
	Migrations: Migrations(),
	Operations: offerOperations,
	SetUp:      setUp,
}

//go:generate env CGO_ENABLED=0 go run example.com/twinbox/dev/tools/apijson openapi.yaml openapi.gen.json

//go:embed openapi.gen.json
var openAPI []byte

//go:embed migrations/*.sql
var files embed.FS

func Migrations() []migrations.Set {
	return []migrations.Set{
		migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Folder("payments", files, "migrations"),
	}
}

func setUp(node *eventing.Node, cfg Config) error {
	router := web.NewRouter(web.Config{
		MapError: command.Problem, Document: openAPI, RequestTimeout: cfg.RequestTimeout,
		Registerer: node.Admin.Registry(), Traces: node.Traces,
	}, node.Log)
	a := &api{node, cfg}
	router.Post("/v1/payments", a.take)
	node.Serve(cfg.Server(cfg.RequestTimeout, router, node.Log).Serve)
	return nil
}

type api struct {
	node *eventing.Node
	cfg  Config
}

// takeRequest is the body of POST /v1/payments. A real provider decides Times and AfterSeconds.
type takeRequest struct {
	OrderID      string `json:"order_id"`
	Amount       int64  `json:"amount"`
	Currency     string `json:"currency"`
	Times        *int   `json:"times,omitempty"`         // reports of the payment; default 1
	AfterSeconds int    `json:"after_seconds,omitempty"` // delay of the reports; default 0
}

const (
	mostAmount = 100_000_000
	mostTimes  = 10
	mostLate   = 24 * 60 * 60
)

var currencies = regexp.MustCompile(`^[A-Z]{3}$`)

func (t takeRequest) check() error {
	switch {
	case !contract.ValidID(t.OrderID):
		return invalid("order_id", "is not a lower-case UUID")
	case t.Amount < 1 || t.Amount > mostAmount:
		return invalid("amount", "is not between 1 and 100000000 minor units")
	case !currencies.MatchString(t.Currency):
		return invalid("currency", "is not three capital letters")
	case t.Times != nil && (*t.Times < 1 || *t.Times > mostTimes):
		return invalid("times", "is not between 1 and 10")
	case t.AfterSeconds < 0 || t.AfterSeconds > mostLate:
		return invalid("after_seconds", "is not between 0 and a day")
	}
	return nil
}

func invalid(member, detail string) error {
	return web.MemberError(http.StatusUnprocessableEntity, web.Code("invalid_"+member), member, detail)
}

type taken struct {
	PaymentID string `json:"payment_id"`
}

func (a *api) take(w http.ResponseWriter, r *http.Request) {
	body, err := web.Decode[takeRequest](w, r)
	if err == nil {
		err = body.check()
	}
	answer := taken{uuid.Must(uuid.NewV7()).String()}
	if err == nil {
		err = command.Transaction{Pool: a.node.Pool, Timeout: a.cfg.RequestTimeout}.Run(r.Context(),
			func(ctx context.Context, tx pgx.Tx) error { return a.store(ctx, tx, answer.PaymentID, body) })
	}
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	a.node.Outbox.Committed()
	web.WriteJSON(w, r, http.StatusAccepted, answer)
}

const insertPayment = `insert into payment (id, order_id, amount, currency) values ($1, $2, $3, $4)`

// Late events are scheduled.
func (a *api) store(ctx context.Context, tx pgx.Tx, id string, t takeRequest) error {
	if _, err := tx.Exec(ctx, insertPayment, id, t.OrderID, t.Amount, t.Currency); err != nil {
		return fmt.Errorf("insert payment: %w", err)
	}
	times := 1
	if t.Times != nil {
		times = *t.Times
	}
	at := time.Now().UTC().Truncate(time.Microsecond)
	for n := range times {
		e, err := event.New(contract.PaymentCompleted, 0, contract.Payment{
			PaymentID: id, OrderID: t.OrderID, Money: contract.Money{Amount: t.Amount, Currency: t.Currency}, CompletedAt: at,
		})
		if err != nil {
			return err
		}
		if t.AfterSeconds > 0 {
			due := outbox.After(time.Duration(t.AfterSeconds) * time.Second)
			err = a.node.Outbox.Schedule(ctx, tx, fmt.Sprintf("%s %d", id, n), due, e)
		} else {
			_, err = a.node.Outbox.Add(ctx, tx, e)
		}
		if err != nil {
			return fmt.Errorf("add to outbox: %w", err)
		}
	}
	return nil
}
