package ledger

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/web"
)

// A handler of api reads and checks, calls one command or one query, and answers; see openapi.yaml.
type api struct{ commands *Commands }

func newHandler(commands *Commands, cfg web.Config, log *slog.Logger) http.Handler {
	cfg.MapError, cfg.Document = mapError, openAPI
	router := web.NewRouter(cfg, log)
	a := &api{commands}
	router.Post("/v1/accounts", writeAnswer(a.open))
	router.Post("/v1/accounts/{id}/credits", writeAnswer(a.credit))
	router.Post("/v1/accounts/{id}/debits", writeAnswer(a.debit))
	router.Get("/v1/accounts/{id}", a.show)
	router.Head("/v1/accounts/{id}", a.show) // net/http drops the body
	return router
}

// writeAnswer writes a command's answer as it is stored under its key.
func writeAnswer(do func(http.ResponseWriter, *http.Request) (command.Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := do(w, r)
		if err != nil {
			web.WriteProblem(w, r, err)
			return
		}
		web.WriteEncoded(w, answer.Status, answer.Body)
	}
}

type accountRequest struct {
	Currency string `json:"currency"`
}

func (a *api) open(w http.ResponseWriter, r *http.Request) (answer command.Answer, err error) {
	key, err := web.IdempotencyKey(r)
	if err != nil {
		return answer, err
	}
	body, err := web.Decode[accountRequest](w, r)
	if err != nil {
		return answer, err
	}
	currency, err := account.ParseCurrency(body.Currency)
	if err != nil {
		return answer, err
	}
	answer, err = a.commands.Open(r.Context(), key, currency)
	var opened account.Account // a stored answer has it, too
	if err == nil && json.Unmarshal(answer.Body, &opened) == nil {
		w.Header().Set("Location", "/v1/accounts/"+string(opened.ID))
	}
	return answer, err
}

type creditRequest struct {
	Amount          int64  `json:"amount"`
	Currency        string `json:"currency"`
	ExpectedVersion *int64 `json:"expected_version,omitempty"`
}

func (a *api) credit(w http.ResponseWriter, r *http.Request) (command.Answer, error) {
	body, err := web.Decode[creditRequest](w, r)
	if err != nil {
		return command.Answer{}, err
	}
	m, err := readMovement(r, body.Amount, body.Currency, body.ExpectedVersion)
	if err != nil {
		return command.Answer{}, err
	}
	return a.commands.Credit(r.Context(), m)
}

// A debit must name the version of the balance that it was decided on.
type debitRequest struct {
	Amount          int64  `json:"amount"`
	Currency        string `json:"currency"`
	ExpectedVersion int64  `json:"expected_version"`
}

func (a *api) debit(w http.ResponseWriter, r *http.Request) (command.Answer, error) {
	body, err := web.Decode[debitRequest](w, r)
	if err != nil {
		return command.Answer{}, err
	}
	m, err := readMovement(r, body.Amount, body.Currency, &body.ExpectedVersion)
	if err != nil {
		return command.Answer{}, err
	}
	return a.commands.Debit(r.Context(), m)
}

func readMovement(
	r *http.Request, amount int64, currency string, expected *int64,
) (m Movement, err error) {
	if m.Account, err = account.ParseID(chi.URLParam(r, "id")); err != nil {
		return m, err
	}
	if m.Key, err = web.IdempotencyKey(r); err != nil {
		return m, err
	}
	m.Money, err = account.ParseMoney(amount, currency)
	m.Expected = expected
	return m, err
}

func (a *api) show(w http.ResponseWriter, r *http.Request) {
	id, err := account.ParseID(chi.URLParam(r, "id"))
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	b, err := readBalance(r.Context(), a.commands.Transaction.Pool, id)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	if !web.NotModified(w, r, web.ETag(b.Version, "")) {
		web.WriteJSON(w, r, http.StatusOK, b)
	}
}
