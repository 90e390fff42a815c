package order

import (
	"net/http"
	"net/mail"
	"regexp"

	"github.com/go-chi/chi/v5"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/web"
)

// A handler of api reads and checks, calls one command or one query, and answers; see openapi.yaml.
type api struct{ commands *Commands }

func newHandler(commands *Commands, cfg Config, node *eventing.Node) http.Handler {
	router := web.NewRouter(web.Config{
		MapError: command.Problem, Document: openAPI, RequestTimeout: cfg.RequestTimeout,
		Registerer: node.Admin.Registry(), Traces: node.Traces,
	}, node.Log)
	a := &api{commands}
	router.Post("/v1/orders", a.place)
	router.Get("/v1/orders/{id}", a.show)
	router.Post("/v1/orders/{id}/cancellation", a.cancel)
	return router
}

type placeRequest struct {
	Email    string `json:"email"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

func (a *api) place(w http.ResponseWriter, r *http.Request) {
	key, err := web.IdempotencyKey(r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	body, err := web.Decode[placeRequest](w, r)
	if err == nil {
		err = body.check()
	}
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	answer, err := a.commands.Place(r.Context(), Placing{
		Key: key, Email: body.Email, Money: contract.Money{Amount: body.Amount, Currency: body.Currency},
	})
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	web.WriteEncoded(w, answer.Status, answer.Body)
}

func (a *api) show(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "id")
	if !contract.ValidID(id) {
		web.WriteProblem(w, r, errUnknownOrder)
		return
	}
	o, err := read(r.Context(), a.commands.Transaction.Pool, id)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	if !web.NotModified(w, r, web.ETag(o.Version, "")) {
		web.WriteJSON(w, r, http.StatusOK, o)
	}
}

func (a *api) cancel(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "id")
	if !contract.ValidID(id) {
		web.WriteProblem(w, r, errUnknownOrder)
		return
	}
	o, err := a.commands.Cancel(r.Context(), id)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	web.WriteJSON(w, r, http.StatusOK, o)
}

// mostAmount is in minor units; longestEmail is the limit of mail servers.
const (
	mostAmount   = 100_000_000
	longestEmail = 254
)

var currencies = regexp.MustCompile(`^[A-Z]{3}$`)

func (p placeRequest) check() error {
	address, err := mail.ParseAddress(p.Email)
	switch {
	case err != nil || address.Address != p.Email || len(p.Email) > longestEmail:
		return invalid("email", "is not an address")
	case p.Amount < 1 || p.Amount > mostAmount:
		return invalid("amount", "is not between 1 and 100000000 minor units")
	case !currencies.MatchString(p.Currency):
		return invalid("currency", "is not three capital letters")
	}
	return nil
}

func invalid(member, detail string) error {
	return web.MemberError(http.StatusUnprocessableEntity, web.Code("invalid_"+member), member, detail)
}
