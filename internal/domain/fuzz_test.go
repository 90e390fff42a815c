package domain_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
)

func FuzzParseName(f *testing.F) {
	for _, seed := range []string{
		"Ada", " Ada ", "", "\u200b", "\u3164", "\u202eAda", "Ada\n", "\xff", "क्\u200dष", strings.Repeat("x", 201),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := domain.ParseName(text)
		if err != nil {
			requireCode(t, domain.CodeInvalidName, err)
			return
		}
		require.True(t, utf8.ValidString(string(name)))
		require.NotContains(t, string(name), "\n")
		require.False(t, strings.ContainsFunc(string(name), func(r rune) bool {
			return unicode.Is(unicode.C, r) && r != '\u200c' && r != '\u200d'
		}), "no control, format, private or unassigned character but the joiners")
		require.NotEmpty(t, strings.TrimSpace(string(name)))
		again, err := domain.ParseName(string(name))
		require.NoError(t, err)
		require.Equal(t, name, again)
	})
}

func FuzzParseToken(f *testing.F) {
	good, err := key.Sign(ada, adaAt, noon)
	require.NoError(f, err)
	for _, seed := range []string{
		good, strings.Repeat("A", len(good)), "", "%%%", good[:len(good)-4], good + "AAAA", good + "=",
		strings.Repeat("+/", 38), good[:10] + "\n" + good[10:],
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		claim, err := domain.ParseToken(token)
		if err == nil {
			err = key.Verify(claim, adaAt, noon.Add(-1))
		}
		if token == good {
			require.NoError(t, err)
			return
		}
		requireCode(t, domain.CodeTokenInvalid, err)
	})
}
