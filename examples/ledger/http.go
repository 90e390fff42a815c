package ledger

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/openapi"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/web"
)

// A handler of api reads and checks, calls one command or one query, and answers.
type api struct{ commands *Commands }

var _ openapi.ServerInterface = (*api)(nil)

// newHandler puts the API behind the edge: limits, log, traces, problems.
func newHandler(
	a *api, cfg Config, metrics prometheus.Registerer, traces trace.TracerProvider, log *slog.Logger,
) http.Handler {
	router := web.NewRouter(web.Config{
		MapError:       mapError,
		Document:       openAPI,
		RequestTimeout: cfg.RequestTimeout,
		RateLimit:      cfg.RateLimit,
		TrustedProxies: cfg.TrustedProxies,
		Registerer:     metrics,
		Traces:         traces,
	}, log)
	return openapi.HandlerWithOptions(a, openapi.ChiServerOptions{
		BaseRouter: router,
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			web.WriteProblem(w, r, parameterError(err))
		},
	})
}

// OpenAccount answers POST /v1/accounts.
func (a *api) OpenAccount(w http.ResponseWriter, r *http.Request, _ openapi.OpenAccountParams) {
	answer, err := a.open(w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	var made openapi.AccountState // a stored answer has it, too
	if json.Unmarshal(answer.Body, &made) == nil {
		w.Header().Set("Location", "/v1/accounts/"+made.AccountId)
	}
	web.WriteEncoded(w, answer.Status, answer.Body)
}

func (a *api) open(w http.ResponseWriter, r *http.Request) (answer command.Answer, err error) {
	key, err := web.IdempotencyKey(r)
	if err != nil {
		return answer, err
	}
	body, err := web.Decode[openapi.AccountRequest](w, r)
	if err != nil {
		return answer, err
	}
	currency, err := account.ParseCurrency(body.Currency)
	if err != nil {
		return answer, err
	}
	return a.commands.Open(r.Context(), key, currency)
}

// CreditAccount answers POST /v1/accounts/{id}/credits.
func (a *api) CreditAccount(
	w http.ResponseWriter, r *http.Request, id openapi.AccountID, _ openapi.CreditAccountParams,
) {
	move(w, r, id, a.commands.Credit, func(body openapi.CreditRequest) (Movement, error) {
		money, err := account.ParseMoney(body.Amount, body.Currency)
		return Movement{Money: money, Expected: body.ExpectedVersion}, err
	})
}

// DebitAccount answers POST /v1/accounts/{id}/debits.
func (a *api) DebitAccount(w http.ResponseWriter, r *http.Request, id openapi.AccountID, _ openapi.DebitAccountParams) {
	move(w, r, id, a.commands.Debit, func(body openapi.DebitRequest) (Movement, error) {
		money, err := account.ParseMoney(body.Amount, body.Currency)
		return Movement{Money: money, Expected: &body.ExpectedVersion}, err
	})
}

func move[T any](
	w http.ResponseWriter, r *http.Request, id string, do func(context.Context, Movement) (command.Answer, error),
	asked func(body T) (Movement, error),
) {
	movement, err := readMovement(w, r, id, asked)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	answer, err := do(r.Context(), movement)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	web.WriteEncoded(w, answer.Status, answer.Body)
}

func readMovement[T any](
	w http.ResponseWriter, r *http.Request, id string, asked func(body T) (Movement, error),
) (m Movement, err error) {
	of, err := account.ParseID(id)
	if err != nil {
		return m, err
	}
	key, err := web.IdempotencyKey(r)
	if err != nil {
		return m, err
	}
	body, err := web.Decode[T](w, r)
	if err != nil {
		return m, err
	}
	m, err = asked(body)
	m.Account, m.Key = of, key
	return m, err
}

// GetAccount answers GET /v1/accounts/{id}.
func (a *api) GetAccount(w http.ResponseWriter, r *http.Request, id openapi.AccountID) {
	accountID, err := account.ParseID(id)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	b, err := readBalance(r.Context(), a.commands.Pool, accountID)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	if web.NotModified(w, r, web.ETag(b.Version, "")) {
		return
	}
	web.WriteJSON(w, r, http.StatusOK, openapi.Account{
		AccountId: string(b.ID), Currency: string(b.Currency), Balance: b.Balance, Version: b.Version, AsOf: b.AsOf.UTC(),
	})
}

// HeadAccount answers HEAD /v1/accounts/{id}; net/http drops the body.
func (a *api) HeadAccount(w http.ResponseWriter, r *http.Request, id openapi.AccountID) {
	a.GetAccount(w, r, id)
}
