package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
)

func request(header string, values ...string) *http.Request {
	return &http.Request{Header: http.Header{header: values}}
}

func TestIdempotencyKeyIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"k1"`:                                 "k1",
		`k1`:                                   "k1",
		` "k 1"	`:                              "k 1",
		`"a\"b\\c"`:                            `a"b\c`,
		"8e03978e-40d5-43e8-bc93-6894a57f9324": "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`a,b;c=d`:                              "a,b;c=d",
		strings.Repeat("k", 255):               strings.Repeat("k", 255),
		`"` + strings.Repeat(`\"`, 255) + `"`:  strings.Repeat(`"`, 255),
	} {
		key, err := web.IdempotencyKey(request("Idempotency-Key", text))
		require.NoError(t, err, text)
		require.Equal(t, want, key)
	}
	key, err := web.IdempotencyKey(request("Other", "x"))
	require.NoError(t, err, "it is optional")
	require.Empty(t, key)
}

func TestIdempotencyKeyIsRefused(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"twice":             {"a", "a"},
		"empty":             {""},
		"empty string":      {`""`},
		"escaped end":       {`"k\"`},
		"unknown escape":    {`"\n"`},
		"parameters":        {`"k";a=1`},
		"blank inside":      {`a b`},
		"backslash inside":  {`a\b`},
		"256 characters":    {strings.Repeat("k", 256)},
		"accent":            {"é"},
		"control character": {"\"a\x01b\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := web.IdempotencyKey(request("Idempotency-Key", values...))
			var refused *web.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, web.CodeIdempotencyKeyInvalid, refused.Code)
			require.Equal(t, http.StatusBadRequest, refused.Status)
			require.Equal(t, "Idempotency-Key", refused.Fields[0].Parameter)
			require.Contains(t, refused.Detail, "request header Idempotency-Key")
			require.Contains(t, refused.Detail, "Send 1 to 255 printable ASCII characters")
		})
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"1"`, web.ETag(1, ""))
	require.Equal(t, `"12-mailed"`, web.ETag(12, "mailed"))
}

func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	for value, status := range map[string]int{
		``: 200, `"3"`: 304, `W/"3"`: 304, `*`: 304, `"1", "3"`: 304, `"1" , W/"3"`: 304,
		`"2"`: 200, `3`: 200, `"3`: 200, `"33"`: 200, `garbage`: 200, `"3-x"`: 200, `,,,`: 200,
	} {
		got := s.send(t, "GET", "/v1/things/1", map[string]string{"If-None-Match": value})
		require.Equal(t, status, got.status, value)
		require.Equal(t, `"3"`, got.header.Get("ETag"))
		if status == http.StatusNotModified {
			require.Empty(t, got.body)
		}
	}
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	require.Equal(t, http.StatusNoContent, s.send(t, "PATCH", "/v1/things/1", nil).status)
	for value, status := range map[string]int{
		`"3"`: 204, `*`: 204, `"1", "3"`: 204, `"3-mailed"`: 204,
		`"2"`: 412, `W/"3"`: 412, `3`: 412, `"3`: 412, `garbage`: 412, ``: 412, `"33"`: 412, `"-3"`: 412, `""`: 412,
	} {
		got := s.send(t, "PATCH", "/v1/things/1", map[string]string{"If-Match": value})
		require.Equal(t, status, got.status, value)
		if status == http.StatusPreconditionFailed {
			require.Equal(t, web.CodePreconditionFailed, got.problem(t).Code)
		}
	}
}
