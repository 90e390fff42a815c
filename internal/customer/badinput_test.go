package customer

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	contract "example.com/twinbox/api"
	"example.com/twinbox/internal/command"
	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/testkit"
)

// The packages web and domain test their own rules: here each code has a case.
func TestBadSignupsLeaveNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good := `{"email":"ada@example.org","name":"Ada"}`
	long := strings.Repeat("a", 1<<17)
	for name, row := range map[string]struct {
		body    string
		headers []string
		status  int
		code    string
	}{
		"no body":          {"", nil, 400, "body_missing"},
		"array":            {"[]", nil, 400, "not_an_object"},
		"truncated":        {good[:20], nil, 400, "malformed_json"},
		"unknown member":   {`{"email":"ada@example.org","name":"Ada","admin":true}`, nil, 400, "unknown_member"},
		"email missing":    {`{"name":"Ada"}`, nil, 400, "missing_member"},
		"email null":       {`{"email":null,"name":"Ada"}`, nil, 400, "wrong_type"},
		"too large":        {`{"email":"` + long + `","name":"Ada"}`, nil, 413, "body_too_large"},
		"header injection": {`{"email":"ada@example.org\r\nBcc: e@b.org","name":"Ada"}`, nil, 422, "invalid_email"},
		"name of blanks":   {`{"email":"ada@example.org","name":"  "}`, nil, 422, "invalid_name"},
		"both wrong":       {`{"email":"x","name":""}`, nil, 422, "invalid_email"},
		"no content type":  {good, []string{"Content-Type", ""}, 415, "unsupported_media_type"},
		"compressed":       {good, []string{"Content-Encoding", "gzip"}, 415, "unsupported_content_encoding"},
		"key empty":        {good, []string{"Idempotency-Key", `""`}, 400, "idempotency_key_invalid"},
	} {
		headers := append([]string{"Idempotency-Key", "k1"}, row.headers...)
		a := b.do(t, http.MethodPost, "/v1/signups", row.body, headers...)
		require.Equal(t, row.status, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, row.code, a.Code(t), name)
	}
	require.Equal(t, [3]int{}, b.stored(t))
}

func TestBadCustomerIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
	for _, alias := range []string{
		"urn:uuid:" + id, "%7B" + id + "%7D", strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "42", "..%2f", "%00",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPatch} {
			a := b.do(t, method, "/v1/customers/"+alias, `{"name":"Eve","expected_version":1}`)
			a.requireProblem(t, http.StatusBadRequest, "invalid_user_id", alias)
		}
	}
	a := b.do(t, http.MethodPatch, "/v1/customers/"+id, `{"name":"Eve","expected_version":1}`)
	a.requireProblem(t, http.StatusNotFound, "user_not_found")
}

func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	for _, code := range []web.Code{
		command.CodeKeyInFlight, command.CodeKeyReused, command.CodeOutcomeUnknown, codeSignupsUsedUp,
	} {
		require.True(t, openapi.ProblemCode(code).Valid(), code)
	}
	documented := testkit.ProblemStatuses(t, contract.OpenAPI)
	for code, status := range statuses {
		require.Equal(t, documented[string(code)], status, code)
		answer := mapError(&domain.Error{Code: code, Field: "x", Message: "y"})
		require.Equal(t, web.Code(code), answer.Code)
	}
	require.Nil(t, mapError(&domain.Error{Code: "new_rule"}), "a rule without status is a defect, not a 4xx")
}
