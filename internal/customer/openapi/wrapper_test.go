package openapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/customer/openapi"
	"example.com/twinbox/internal/domain"
)

type call struct {
	openapi.Unimplemented
	operation, argument string
	err                 error
}

func (c *call) GetCustomer(_ http.ResponseWriter, _ *http.Request, id openapi.CustomerID) {
	c.operation, c.argument = "get", id
}

func (c *call) HeadCustomer(_ http.ResponseWriter, _ *http.Request, id openapi.CustomerID) {
	c.operation, c.argument = "head", id
}

func (c *call) CreateSignup(_ http.ResponseWriter, _ *http.Request, params openapi.CreateSignupParams) {
	c.operation = "signup"
	if params.IdempotencyKey != nil {
		c.argument = *params.IdempotencyKey
	}
}

func (c *call) ShowVerification(_ http.ResponseWriter, _ *http.Request, params openapi.ShowVerificationParams) {
	c.operation, c.argument = "link", params.Token
}

func send(r *http.Request) *call {
	c := &call{}
	handler := openapi.HandlerWithOptions(c, openapi.ChiServerOptions{
		BaseRouter:       chi.NewRouter(),
		ErrorHandlerFunc: func(_ http.ResponseWriter, _ *http.Request, err error) { c.err = err },
	})
	handler.ServeHTTP(httptest.NewRecorder(), r)
	return c
}

const id = "01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10"

func TestParametersArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ method, target, key, operation, argument string }{
		{"GET", "/v1/customers/" + id, "", "get", id},
		{"HEAD", "/v1/customers/" + id, "", "head", id},
		{"GET", "/v1/customers/" + strings.ToUpper(id), "", "get", strings.ToUpper(id)},
		{"GET", "/v1/customers/urn:uuid:" + id, "", "get", "urn:uuid:" + id},
		{"GET", "/v1/customers/%7B" + id + "%7D", "", "get", "{" + id + "}"},
		{"GET", "/v1/customers/a%2Fb", "", "get", "a/b"},
		{"GET", "/v1/customers/a%252Fb", "", "get", "a%2Fb"},
		{"GET", "/v1/verifications?token=a.b-c_d", "", "link", "a.b-c_d"},
		{"GET", "/v1/verifications?token=a&utm_source=mail", "", "link", "a"},
		{"POST", "/v1/signups", `"k,1"`, "signup", `"k,1"`},
		{"POST", "/v1/signups", "", "signup", ""},
	} {
		t.Run(test.method+" "+test.target, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(test.method, test.target, http.NoBody)
			if test.key != "" {
				r.Header.Set("Idempotency-Key", test.key)
			}
			got := send(r)
			require.NoError(t, got.err)
			require.Equal(t, test.operation, got.operation)
			require.Equal(t, test.argument, got.argument)
		})
	}
}

func TestParametersThatAreMissingOrRepeated(t *testing.T) {
	t.Parallel()
	keys := func(keys ...string) http.Header { return http.Header{"Idempotency-Key": keys} }
	for name, test := range map[string]struct {
		method, target string
		header         http.Header
		want           any
	}{
		"two keys":      {"POST", "/v1/signups", keys("a", "a"), new(*openapi.TooManyValuesForParamError)},
		"no token":      {"GET", "/v1/verifications", nil, new(*openapi.RequiredParamError)},
		"other case":    {"GET", "/v1/verifications?Token=a", nil, new(*openapi.RequiredParamError)},
		"two tokens":    {"GET", "/v1/verifications?token=a&token=b", nil, new(*openapi.InvalidParamFormatError)},
		"broken escape": {"GET", "/v1/verifications?token=%zz", nil, new(*openapi.RequiredParamError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(test.method, test.target, http.NoBody)
			if test.header != nil {
				r.Header = test.header
			}
			got := send(r)
			require.Empty(t, got.operation, "the handler was called")
			require.Error(t, got.err)
			require.True(t, errors.As(got.err, test.want), "%T", got.err)
		})
	}
}

func FuzzCustomerID(f *testing.F) {
	for _, seed := range []string{
		id, strings.ToUpper(id), "urn:uuid:" + id, "{" + id + "}", strings.ReplaceAll(id, "-", ""), id + "\n", id + "/",
		"00000000-0000-0000-0000-000000000000", "", "..", "%2e%2e", "a/b", "\x00", "\xff", id + "," + id, id + "?x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.URL = &url.URL{Path: "/v1/customers/" + text}
		got := send(r)
		if got.operation == "" {
			return
		}
		require.NoError(t, got.err)
		accepted, err := domain.ParseUserID(got.argument)
		if err != nil {
			return
		}
		require.Equal(t, text, string(accepted), "an alias")
	})
}
