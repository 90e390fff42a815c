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
}

func TestIdempotencyKeyIsOptional(t *testing.T) {
	t.Parallel()
	key, err := web.IdempotencyKey(request("Other", "x"))
	require.NoError(t, err)
	require.Empty(t, key)
}

func TestIdempotencyKeyIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values []string
		code   web.Code
	}{
		"twice":             {[]string{"a", "a"}, web.CodeIdempotencyKeyInvalid},
		"empty":             {[]string{""}, web.CodeIdempotencyKeyInvalid},
		"blank":             {[]string{" \t"}, web.CodeIdempotencyKeyInvalid},
		"empty string":      {[]string{`""`}, web.CodeIdempotencyKeyInvalid},
		"only a quote":      {[]string{`"`}, web.CodeIdempotencyKeyInvalid},
		"open":              {[]string{`"k`}, web.CodeIdempotencyKeyInvalid},
		"escaped end":       {[]string{`"k\"`}, web.CodeIdempotencyKeyInvalid},
		"dangling escape":   {[]string{`"k\`}, web.CodeIdempotencyKeyInvalid},
		"unknown escape":    {[]string{`"\n"`}, web.CodeIdempotencyKeyInvalid},
		"parameters":        {[]string{`"k";a=1`}, web.CodeIdempotencyKeyInvalid},
		"two strings":       {[]string{`"a", "b"`}, web.CodeIdempotencyKeyInvalid},
		"blank inside":      {[]string{`a b`}, web.CodeIdempotencyKeyInvalid},
		"quote inside":      {[]string{`a"b`}, web.CodeIdempotencyKeyInvalid},
		"backslash inside":  {[]string{`a\b`}, web.CodeIdempotencyKeyInvalid},
		"256 characters":    {[]string{strings.Repeat("k", 256)}, web.CodeIdempotencyKeyInvalid},
		"256 in quotes":     {[]string{`"` + strings.Repeat("k", 256) + `"`}, web.CodeIdempotencyKeyInvalid},
		"accent":            {[]string{"é"}, web.CodeIdempotencyKeyInvalid},
		"invalid UTF-8":     {[]string{"\xff"}, web.CodeIdempotencyKeyInvalid},
		"control character": {[]string{"\"a\x01b\""}, web.CodeIdempotencyKeyInvalid},
		"tab inside":        {[]string{"\"a\tb\""}, web.CodeIdempotencyKeyInvalid},
		"delete":            {[]string{"a\x7f"}, web.CodeIdempotencyKeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := web.IdempotencyKey(request("Idempotency-Key", test.values...))
			var refused *web.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, test.code, refused.Code)
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
