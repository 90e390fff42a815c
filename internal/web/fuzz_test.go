package web_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
)

func decode[T any](body []byte) (T, error) {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return web.Decode[T](httptest.NewRecorder(), r)
}

// An accepted value survives a round trip, and the standard library agrees.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		goodThing, "", "null", "[]", `"x"`, "1", "{", goodThing + goodThing, `{"email":"a","email":"b"}`,
		`{"Email":"a"}`, `{"email":null}`, `{"count":1.0}`, `{"count":-0}`, `{"count":9223372036854775808}`,
		`{"email":"\ud800"}`, "{\"email\":\"\xff\"}", "\ufeff{}", strings.Repeat("[", 100),
		`{"email":"\u0000","name":"\ud83d\udc69","count":-1,"note":{"text":"<&>"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := decode[thing](body)
		if err != nil {
			var refused *web.Error
			require.ErrorAs(t, err, &refused)
			require.Less(t, refused.Status, 500)
			require.NotEmpty(t, refused.Code)
			return
		}
		var standard thing
		require.NoError(t, json.Unmarshal(body, &standard))
		require.Equal(t, standard, value)
		written, err := json.Marshal(value)
		require.NoError(t, err)
		again, err := decode[thing](written)
		require.NoError(t, err)
		require.Equal(t, value, again)
	})
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{`"k"`, `k`, `"a\"b"`, `"`, `""`, ` k `, `"k";a`, "é", strings.Repeat("k", 256)} {
		f.Add(seed)
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := web.IdempotencyKey(request("Idempotency-Key", text))
		if err != nil {
			var refused *web.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, web.CodeIdempotencyKeyInvalid, refused.Code)
			return
		}
		require.NotEmpty(t, key)
		require.LessOrEqual(t, len(key), 255)
		again, err := web.IdempotencyKey(request("Idempotency-Key", `"`+escape.Replace(key)+`"`))
		require.NoError(t, err)
		require.Equal(t, key, again)
	})
}

func FuzzETag(f *testing.F) {
	for _, seed := range []string{`"3"`, `W/"3"`, `*`, `"3-a"`, `3`, `"`, `"3`, `,`, `"1","3"`} {
		f.Add(seed, int64(3))
	}
	f.Fuzz(func(t *testing.T, header string, version int64) {
		recorder := httptest.NewRecorder()
		etag := web.ETag(version, "")
		if web.NotModified(recorder, request("If-None-Match", header), etag) && !strings.Contains(header, "*") {
			require.Contains(t, header, etag)
		}
		if web.CheckIfMatch(request("If-Match", header), 3) == nil && !strings.Contains(header, "*") {
			require.Contains(t, header, `"3`)
		}
	})
}
