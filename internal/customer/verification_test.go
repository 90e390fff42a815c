package customer

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
)

func (b *bundle) token(t *testing.T, id domain.UserID, email domain.Email, expires time.Time) string {
	t.Helper()
	token, err := testKey.Sign(id, email, expires)
	require.NoError(t, err)
	return token
}

const (
	pathVerifications = linkPath
	browserAccept     = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	formType          = "application/x-www-form-urlencoded"
)

func (b *bundle) open(t *testing.T, token string, headers ...string) answer {
	t.Helper()
	return b.do(t, http.MethodGet, pathVerifications+"?token="+url.QueryEscape(token), "",
		append([]string{"Accept", browserAccept}, headers...)...)
}

func (b *bundle) press(t *testing.T, page answer) answer {
	t.Helper()
	form := formOf.FindStringSubmatch(string(page.Body))
	require.Len(t, form, 4, string(page.Body))
	at, err := url.Parse("https://example.org/shop" + pathVerifications + "?token=x") // behind a proxy
	require.NoError(t, err)
	action, err := at.Parse(form[1])
	require.NoError(t, err)
	require.Equal(t, "https://example.org/shop"+pathVerifications, action.String(), "and has no token in its address")
	return b.do(t, http.MethodPost, pathVerifications, url.Values{form[2]: {form[3]}}.Encode(),
		"Content-Type", formType, "Accept", browserAccept)
}

var formOf = regexp.MustCompile(
	`(?s)<form method="post" action="([^"]+)">\s*<input type="hidden" name="([^"]+)" value="([^"]+)">\s*` +
		`<button type="submit">[^<]+</button>\s*</form>`)

func (a answer) requirePage(t *testing.T, status int, title string) {
	t.Helper()
	require.Equal(t, status, a.Status, string(a.Body))
	require.Equal(t, "text/html; charset=utf-8", a.Header.Get("Content-Type"))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.Equal(t, "no-referrer", a.Header.Get("Referrer-Policy"))
	for _, rule := range []string{
		"default-src 'none'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
	} {
		require.Contains(t, a.Header.Get("Content-Security-Policy"), rule)
	}
	page := string(a.Body)
	require.Contains(t, page, "<h1>"+title+"</h1>")
	require.Contains(t, page, `<html lang="en">`)
	require.Contains(t, page, `name="viewport"`)
	require.NotContains(t, page, "<script", "the page works without scripts")
}

func TestVerificationByPost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	token := b.token(t, id, "ada@example.org", time.Now().Add(time.Hour))
	for range 2 {
		a := b.do(t, http.MethodPost, pathVerifications, fmt.Sprintf(`{"token":%q}`, token))
		require.Equal(t, http.StatusOK, a.Status, string(a.Body))
		require.Equal(t, map[string]any{"user_id": string(id), "status": "verified", "version": float64(2)}, a.JSON(t))
	}
	require.Equal(t, [3]int{1, 2, 1}, b.stored(t), "the second time is no event")
}

// Mail scanners and browsers open links.
func TestOpeningALinkVerifiesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	token := b.token(t, id, "ada@example.org", time.Now().Add(time.Hour))
	for _, headers := range [][]string{
		nil,
		{"Purpose", "prefetch"},
		{"Sec-Purpose", "prefetch;prerender"},
		{"X-Moz", "prefetch"},
		{"Accept", "*/*"},
		{"Accept", "application/json"},
	} {
		b.open(t, token, headers...).requirePage(t, http.StatusOK, "Confirm your address")
	}
	head := b.do(t, http.MethodHead, pathVerifications+"?token="+token, "")
	require.Equal(t, http.StatusOK, head.Status)
	require.Empty(t, head.Body)
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t), "no event")
	require.Equal(t, 1, b.count(t, `select count(*) from users where status = 'pending_verification'`))
}

func TestTheButtonOfThePageVerifies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	page := b.open(t, b.token(t, id, "ada@example.org", time.Now().Add(time.Hour)))
	for range 2 { // a double click
		b.press(t, page).requirePage(t, http.StatusOK, "Your address is confirmed")
	}
	require.Equal(t, 1, b.count(t, `select count(*) from users where status = 'verified'`))
	require.Equal(t, [3]int{1, 2, 1}, b.stored(t), "one event")

	back := b.open(t, b.token(t, id, "ada@example.org", time.Now().Add(time.Hour)))
	back.requirePage(t, http.StatusOK, "Your address is confirmed")
	require.NotContains(t, string(back.Body), "<form", "there is nothing left to press")

	for _, late := range []string{b.token(t, id, "ada@example.org", time.Now().Add(-time.Second)), "cut off"} {
		require.NotContains(t, string(b.open(t, late).Body), "not confirmed", "it is")
	}
}

// A stranger may have chosen the name.
func TestThePagesCarryNoWordOfTheOneWhoSignedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	require.Equal(t, http.StatusOK, b.rename(t, id, "<script>Pay at evil.example</script>", 1).Status)
	page := b.open(t, b.token(t, id, "ada@example.org", time.Now().Add(time.Hour)))
	done := b.press(t, page)
	for _, a := range []answer{page, done} {
		require.NotContains(t, string(a.Body), "evil.example")
		require.NotContains(t, string(a.Body), "ada@example.org")
	}
}

func TestABadTokenVerifiesNoAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	in, past := time.Now().Add(time.Hour), time.Now().Add(-time.Second)
	good := b.token(t, id, "ada@example.org", in)
	const invalid, expired = "This link does not work", "This link has expired"
	for name, row := range map[string]struct {
		token, code, title string
		status             int
	}{
		"garbage":         {"garbage", "token_invalid", invalid, http.StatusUnprocessableEntity},
		"markup":          {`"><script>alert(1)</script>`, "token_invalid", invalid, http.StatusUnprocessableEntity},
		"empty":           {"", "token_invalid", invalid, http.StatusUnprocessableEntity},
		"cut off":         {good[:40], "token_invalid", invalid, http.StatusUnprocessableEntity},
		"changed":         {strings.ToLower(good), "token_invalid", invalid, http.StatusUnprocessableEntity},
		"expired":         {b.token(t, id, "ada@example.org", past), "token_expired", expired, http.StatusGone},
		"another address": {b.token(t, id, "eve@example.org", in), "token_invalid", invalid, http.StatusUnprocessableEntity},
		"an unknown user": {
			b.token(t, "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "ada@example.org", in), "token_invalid", invalid,
			http.StatusUnprocessableEntity,
		},
	} {
		query, form := "?token="+url.QueryEscape(row.token), url.Values{"token": {row.token}}.Encode()
		for _, a := range []answer{
			b.do(t, http.MethodPost, pathVerifications, fmt.Sprintf(`{"token":%q}`, row.token)),
			b.do(t, http.MethodPost, pathVerifications, form, "Content-Type", formType),
			b.do(t, http.MethodGet, pathVerifications+query, ""),
		} {
			require.Equal(t, row.status, a.Status, name)
			require.Equal(t, row.code, a.Code(t), name)
		}
		b.open(t, row.token).requirePage(t, row.status, row.title)
		b.do(t, http.MethodPost, pathVerifications, form, "Content-Type", formType, "Accept", browserAccept).
			requirePage(t, row.status, row.title)
		head := b.do(t, http.MethodHead, pathVerifications+query, "")
		require.Equal(t, row.status, head.Status, name)
	}
	for _, query := range []string{"", "?", "?tok", "?token=a&token=b"} { // as mail programs break links
		b.do(t, http.MethodGet, pathVerifications+query, "", "Accept", browserAccept).
			requirePage(t, http.StatusBadRequest, invalid)
		require.Contains(t, []string{"missing_parameter", "invalid_parameter"},
			b.do(t, http.MethodGet, pathVerifications+query, "").Code(t))
	}
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}

func TestBadForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.registered(t)
	token := b.token(t, id, "ada@example.org", time.Now().Add(time.Hour))
	for name, row := range map[string]struct {
		body, code string
		headers    []string
	}{
		"no token":      {"x=1", "missing_parameter", nil},
		"two tokens":    {"token=" + token + "&token=" + token, "invalid_parameter", nil},
		"another field": {"token=" + token + "&x=1", "unknown_member", nil},
		"broken escape": {"token=%zz", "invalid_parameter", nil},
		"no body":       {"", "body_missing", []string{"Content-Type", formType}},
		"too long":      {"token=" + strings.Repeat("a", 1<<20), "body_too_large", nil},
		"compressed":    {"token=" + token, "unsupported_content_encoding", []string{"Content-Encoding", "gzip"}},
		"another charset": {
			"token=" + token, "unsupported_media_type", []string{"Content-Type", formType + "; charset=utf-16"},
		},
		"multipart": {"token=" + token, "unsupported_media_type", []string{"Content-Type", "multipart/form-data"}},
	} {
		headers := append([]string{"Content-Type", formType}, row.headers...)
		a := b.do(t, http.MethodPost, pathVerifications, row.body, headers...)
		require.Equal(t, row.code, a.Code(t), name)
		page := b.do(t, http.MethodPost, pathVerifications, row.body, append(headers, "Accept", browserAccept)...)
		require.Equal(t, a.Status, page.Status, name)
		require.Equal(t, "text/html; charset=utf-8", page.Header.Get("Content-Type"), name)
	}
	require.Equal(t, [3]int{1, 1, 1}, b.stored(t))
}
