package customer

import (
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	contracts "example.com/twinbox/api"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/web"
)

type api struct{ commands *Commands }

var _ openapi.ServerInterface = (*api)(nil)

func newHandler(
	a *api, cfg Config, metrics prometheus.Registerer, traces trace.TracerProvider, log *slog.Logger,
) http.Handler {
	router := web.NewRouter(web.Config{
		MapError:       mapError,
		Document:       contracts.OpenAPI,
		RequestTimeout: cfg.RequestTimeout,
		RateLimit:      cfg.RateLimit,
		TrustedProxies: cfg.TrustedProxies,
		Registerer:     metrics,
		Traces:         traces,
	}, log)
	return openapi.HandlerWithOptions(a, openapi.ChiServerOptions{
		BaseRouter: router,
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.URL.Path == linkPath {
				writeLinkError(w, r, parameterError(err))
				return
			}
			web.WriteProblem(w, r, parameterError(err))
		},
	})
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
	if emailErr != nil || nameErr != nil {
		web.WriteProblem(w, r, invalidInput(emailErr, nameErr))
		return
	}
	fault.Here("customer.signup.decoded")
	answer, err := a.commands.SignUp(r.Context(), Signup{Key: key, Email: email, Name: name, Client: web.ClientOf(r)})
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	var made openapi.SignupResponse // a kept answer, too, has the location
	if err := json.Unmarshal(answer.Body, &made); err == nil {
		w.Header().Set("Location", "/v1/customers/"+made.UserId)
	}
	web.WriteEncoded(w, answer.Status, answer.Body)
	fault.Here("customer.signup.answered")
}

// The answer has the first error's code.
func invalidInput(errs ...error) *web.Error {
	var first *web.Error
	for _, err := range errs {
		broken, is := errors.AsType[*domain.Error](err)
		switch {
		case !is:
		case first == nil:
			first = ruleError(broken)
		default:
			first.Fields = append(first.Fields, ruleError(broken).Fields...)
		}
	}
	return first
}

// GetCustomer answers GET /v1/customers/{id}.
func (a *api) GetCustomer(w http.ResponseWriter, r *http.Request, id openapi.CustomerID) {
	userID, err := domain.ParseUserID(id)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	customer, err := readProfile(r.Context(), a.commands.Pool, userID)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	variant := "" // the mail is another aggregate's event: one version has two forms
	if customer.VerificationEmailSentAt != nil {
		variant = "mailed"
	}
	if !web.NotModified(w, r, web.ETag(customer.Version, variant)) {
		web.WriteJSON(w, r, http.StatusOK, customer)
	}
}

// HeadCustomer answers HEAD /v1/customers/{id}; net/http drops the body.
func (a *api) HeadCustomer(w http.ResponseWriter, r *http.Request, id openapi.CustomerID) {
	a.GetCustomer(w, r, id)
}

// RenameCustomer answers PATCH /v1/customers/{id}.
func (a *api) RenameCustomer(w http.ResponseWriter, r *http.Request, id openapi.CustomerID) {
	if err := refuseIdempotencyKey(r); err != nil {
		web.WriteProblem(w, r, err)
		return
	}
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

// CreateVerification answers POST /v1/verifications, from programs and from the link's page.
func (a *api) CreateVerification(w http.ResponseWriter, r *http.Request) {
	if web.IsForm(r) {
		a.pressButton(w, r)
		return
	}
	if err := refuseIdempotencyKey(r); err != nil {
		web.WriteProblem(w, r, err)
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

//go:embed verification.html
var verificationHTML string

var verificationPage = template.Must(template.New("verification").Parse(verificationHTML))

const linkPath = "/v1/verifications"

type pageText struct{ Title, Text, Token string }

var (
	confirmedText = pageText{Title: "Your address is confirmed", Text: "You can close this page."}
	expiredText   = pageText{
		Title: "This link has expired",
		Text: "A link works for a limited time, and the time of this one is over. " +
			"An address that you confirmed with it stays confirmed.",
	}
	invalidText = pageText{
		Title: "This link does not work",
		Text: "It is incomplete, or it was changed on its way. Open it in the mail again, or copy all of it. " +
			"As it is, it confirms no address.",
	}
)

// ShowVerification answers the link in the mail with a page that posts the token. Opening it changes nothing; see
// docs/adr/0018-requests-are-safe-to-repeat.md.
func (a *api) ShowVerification(w http.ResponseWriter, r *http.Request, params openapi.ShowVerificationParams) {
	status, err := a.commands.CheckLink(r.Context(), params.Token)
	switch {
	case err != nil:
		writeLinkError(w, r, err)
	case status == domain.StatusVerified:
		web.WritePage(w, r, http.StatusOK, verificationPage, confirmedText)
	default:
		web.WritePage(w, r, http.StatusOK, verificationPage, pageText{
			Title: "Confirm your address", Token: params.Token,
		})
	}
}

// HeadVerification answers HEAD /v1/verifications?token=; net/http drops the body.
func (a *api) HeadVerification(w http.ResponseWriter, r *http.Request, params openapi.HeadVerificationParams) {
	a.ShowVerification(w, r, openapi.ShowVerificationParams(params))
}

// A second press gets the same answer.
func (a *api) pressButton(w http.ResponseWriter, r *http.Request) {
	token, err := web.FormField(w, r, "token")
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	if _, err := a.commands.Verify(r.Context(), token); err != nil {
		writeLinkError(w, r, err)
		return
	}
	web.WritePage(w, r, http.StatusOK, verificationPage, confirmedText)
}

var linkErrors = map[web.Code]pageText{
	web.Code(domain.CodeTokenExpired): expiredText,
	web.Code(domain.CodeTokenInvalid): invalidText,
	web.CodeMissingParameter:          invalidText, // a mail program cut the token off
	web.CodeInvalidParameter:          invalidText, // or repeated it
}

// writeLinkError answers a browser with a page about its link.
func writeLinkError(w http.ResponseWriter, r *http.Request, err error) {
	problem := web.ProblemOf(r, err)
	text, isOfLink := linkErrors[problem.Code]
	if !isOfLink || !web.WantsPage(r) {
		web.WriteProblem(w, r, err)
		return
	}
	web.WritePage(w, r, problem.Status, verificationPage, text)
}
