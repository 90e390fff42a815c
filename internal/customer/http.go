package customer

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	contracts "example.com/twinbox/api"
	"example.com/twinbox/engine/fault"
	"example.com/twinbox/frame/command"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
)

// api answers the Customer API. A handler reads and checks, calls one command or one query, and answers.
type api struct {
	commands *Commands
	profiles *pgxpool.Pool
}

var _ openapi.ServerInterface = (*api)(nil)

// newHandler puts the API behind the edge: limits, log, traces, problems.
func newHandler(
	a *api, cfg Config, metrics prometheus.Registerer, traces trace.TracerProvider, log *slog.Logger,
) (http.Handler, error) {
	router, err := web.NewRouter(web.Config{
		MapError:       mapError,
		Document:       contracts.OpenAPI,
		RequestTimeout: cfg.RequestTimeout,
		RateLimit:      cfg.RateLimit,
		TrustedProxies: cfg.TrustedProxies,
		Registerer:     metrics,
		Traces:         traces,
	}, log)
	if err != nil {
		return nil, err
	}
	return openapi.HandlerWithOptions(a, openapi.ChiServerOptions{
		BaseRouter: router,
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.URL.Path == linkPath {
				writeLinkError(w, r, parameterError(err))
				return
			}
			web.WriteProblem(w, r, parameterError(err))
		},
	}), nil
}

// CreateSignup answers POST /v1/signups.
func (a *api) CreateSignup(w http.ResponseWriter, r *http.Request, _ openapi.CreateSignupParams) {
	key, err := web.IdempotencyKey(r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	body, err := web.Decode[openapi.SignupRequest](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	email, emailErr := domain.ParseEmail(body.Email)
	name, nameErr := domain.ParseName(body.Name)
	if err := invalidInput(emailErr, nameErr); err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	fault.Here("customer.signup.decoded")
	answer, err := a.commands.SignUp(r.Context(), Signup{Key: key, Email: email, Name: name, Client: web.ClientOf(r)})
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if location := locationOf(answer); location != "" {
		w.Header().Set("Location", location)
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body) // a client that is gone will ask again under its key
	fault.Here("customer.signup.answered")
}

// locationOf is where the customer will be whom the answer tells of: a kept answer says it, too.
func locationOf(answer command.Answer) string {
	var made openapi.SignupResponse
	if answer.Status != http.StatusCreated || json.Unmarshal(answer.Body, &made) != nil {
		return ""
	}
	return "/v1/customers/" + made.UserId
}

// GetCustomer answers GET /v1/customers/{id}.
func (a *api) GetCustomer(w http.ResponseWriter, r *http.Request, id openapi.CustomerID) {
	userID, err := domain.ParseUserID(id)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	p, err := readProfile(r.Context(), a.profiles, userID)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	if web.NotModified(w, r, p.etag()) {
		return
	}
	web.WriteJSON(w, r, http.StatusOK, openapi.Customer{
		UserId:                  string(p.ID),
		Email:                   string(p.Email),
		Name:                    string(p.Name),
		Status:                  openapi.Status(p.Status),
		Version:                 p.Version,
		VerificationEmailSentAt: p.MailSentAt,
	})
}

// etag tells apart what one version can look like: that the mail is out is another aggregate's event.
func (p Profile) etag() string {
	if p.MailSentAt != nil {
		return web.ETag(p.Version, "mailed")
	}
	return web.ETag(p.Version, "")
}

// HeadCustomer answers HEAD /v1/customers/{id}; net/http drops the body.
func (a *api) HeadCustomer(w http.ResponseWriter, r *http.Request, id openapi.CustomerID) {
	a.GetCustomer(w, r, id)
}

// RenameCustomer answers PATCH /v1/customers/{id}.
func (a *api) RenameCustomer(w http.ResponseWriter, r *http.Request, id openapi.CustomerID) {
	userID, err := domain.ParseUserID(id)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	body, err := web.Decode[openapi.RenameRequest](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	if err := web.CheckIfMatch(r, body.ExpectedVersion); err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	name, err := domain.ParseName(body.Name)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	user, err := a.commands.Rename(r.Context(), userID, name, body.ExpectedVersion)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	w.Header().Set("ETag", web.ETag(user.Version, ""))
	web.WriteJSON(w, r, http.StatusOK, openapi.RenameResponse{
		UserId: string(user.ID), Name: string(user.Name), Version: user.Version,
	})
}

// CreateVerification answers POST /v1/verifications, from programs in JSON and from the page of the link as a form.
func (a *api) CreateVerification(w http.ResponseWriter, r *http.Request) {
	if web.IsForm(r) {
		a.pressButton(w, r)
		return
	}
	body, err := web.Decode[openapi.VerificationRequest](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	user, err := a.commands.Verify(r.Context(), body.Token)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	web.WriteJSON(w, r, http.StatusOK, openapi.VerificationResponse{
		UserId: string(user.ID), Status: openapi.Status(user.Status), Version: user.Version,
	})
}
