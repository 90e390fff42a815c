package window

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What the server makes of any headers is decoded as encoding/json would.
func TestHeadersSurviveTheDatabase(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	conn := acquireConn(t, pool)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[a-z0-9 ":,{}\\-]{0,8}`), rapid.StringN(0, 6, -1))
		want := rapid.MapOfN(text, text, 1, 4).Draw(rt, "headers")
		for name, value := range want {
			if strings.Contains(name+value, "\x00") || !utf8.ValidString(name+value) {
				rt.Skip("refused by Add")
			}
		}
		in, err := json.Marshal(want)
		require.NoError(rt, err)
		var out string
		require.NoError(rt, conn.QueryRow(t.Context(), `select $1::text::jsonb::text`, string(in)).Scan(&out))
		got, err := decodeHeaders([]byte(out))
		require.NoError(rt, err)
		require.Equal(rt, want, got)
	})
	_, err := decodeHeaders([]byte(`{"a": 1}`))
	require.Error(t, err)
}

func TestPlainHeadersTakeTheFastWay(t *testing.T) {
	plain := []byte(`{"a": "1", "b": ""}`)
	got, err := decodeHeaders(plain)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": ""}, got)
	var slow map[string]string
	require.Less(t,
		2*testing.AllocsPerRun(100, func() { _, _ = decodeHeaders(plain) }),
		testing.AllocsPerRun(100, func() { slow = nil; _ = json.Unmarshal(plain, &slow) }))
	for _, odd := range []string{`{}`, `{"a": 1}`, `{"a":"1"}`, `{"a": "1"`, `{"a\"": "1"}`, `{"a": "1", }`, `null`} {
		var want map[string]string
		wrong := json.Unmarshal([]byte(odd), &want)
		got, err := decodeHeaders([]byte(odd))
		require.Equal(t, wrong == nil, err == nil, odd)
		require.Equal(t, want, got, odd)
	}
}
