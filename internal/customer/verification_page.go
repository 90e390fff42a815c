package customer

import (
	_ "embed"
	"errors"
	"html/template"
	"net/http"

	"example.com/twinbox/frame/web"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
)

//go:embed verification.html
var verificationHTML string

var verificationPage = template.Must(template.New("verification").Parse(verificationHTML))

// linkPath is where the link in the mail leads.
const linkPath = "/v1/verifications"

// pageText is what the page of a link says. With a token it asks for the button to be pressed.
type pageText struct{ Title, Text, Token string }

var (
	confirmedText = pageText{Title: "Your address is confirmed", Text: "You can close this page."}
	expiredText   = pageText{
		Title: "This link has expired",
		Text:  "A link works for a limited time, and the time of this one is over. Your address is not confirmed.",
	}
	invalidText = pageText{
		Title: "This link does not work",
		Text: "It is incomplete, or it was changed on its way. Open it in the mail again, or copy all of it. " +
			"Your address is not confirmed.",
	}
)

// ShowVerification answers GET /v1/verifications?token=, the link in the mail: a page with a button that posts the
// token. Programs that fetch links, of mail servers, browsers and previews, change nothing; see
// docs/adr/0023-the-link-shows-a-button.md.
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

// pressButton answers POST /v1/verifications from the page's form. Pressed twice, or again after going back, it says
// the same again.
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

// writeLinkError tells a person what is wrong with a link in their words, and all else as every route does.
func writeLinkError(w http.ResponseWriter, r *http.Request, err error) {
	text := invalidText
	parameter, is := errors.AsType[*web.Error](err)
	switch {
	case !web.WantsPage(r):
		web.WriteProblem(w, r, err)
		return
	case errors.Is(err, &domain.Error{Code: domain.CodeTokenExpired}):
		text = expiredText
	case is && (parameter.Code == web.CodeMissingParameter || parameter.Code == web.CodeInvalidParameter):
		// The mail program cut the link off before its token, or wrote it twice.
	case !errors.Is(err, &domain.Error{Code: domain.CodeTokenInvalid}):
		web.WriteProblem(w, r, err)
		return
	}
	web.WritePage(w, r, web.ProblemOf(r, err).Status, verificationPage, text)
}
