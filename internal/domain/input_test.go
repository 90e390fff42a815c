package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/domain"
)

func TestParseEmailAccepts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]domain.Email{
		"ada@example.org":                                  "ada@example.org",
		"Ada.Lovelace+news@Mail.Example.ORG":               "Ada.Lovelace+news@mail.example.org",
		"o'neil@example.org":                               "o'neil@example.org",
		strings.Repeat("a", 64) + "@example.org":           domain.Email(strings.Repeat("a", 64) + "@example.org"),
		"a@" + strings.Repeat("b", 63) + ".xn--p1ai":       domain.Email("a@" + strings.Repeat("b", 63) + ".xn--p1ai"),
		"a@1-2.3com.org":                                   "a@1-2.3com.org",
		strings.Repeat("a", 64) + "@" + longHost(254-64-1): domain.Email(strings.Repeat("a", 64) + "@" + longHost(254-64-1)),
	} {
		got, err := domain.ParseEmail(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
}

func longHost(n int) string {
	host := strings.Repeat(strings.Repeat("h", 60)+".", n/61)
	return host + strings.Repeat("z", n-len(host))
}

func TestParseEmailRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":                  "",
		"blank":                  " ",
		"no at":                  "ada.example.org",
		"display name":           "Ada <ada@example.org>",
		"two addresses":          "ada@example.org,eve@example.org",
		"trailing blank":         "ada@example.org ",
		"trailing dot":           "ada@example.org.",
		"dotless domain":         "ada@localhost",
		"empty label":            "ada@example..org",
		"hyphen first":           "ada@-example.org",
		"hyphen last":            "ada@example-.org",
		"underscore in domain":   "ada@ex_ample.org",
		"numeric top level":      "ada@10.0.0.1",
		"address literal":        "ada@[10.0.0.1]",
		"quoted local part":      `"ada l"@example.org`,
		"dot first":              ".ada@example.org",
		"two dots":               "a..da@example.org",
		"header injection":       "ada@example.org\r\nBcc: eve@example.org",
		"delete character":       "ada\x7f@example.org",
		"international local":    "ädä@example.org",
		"invalid UTF-8":          "ada\xff@example.org",
		"local part of 65 bytes": strings.Repeat("a", 65) + "@example.org",
		"label of 64 bytes":      "a@" + strings.Repeat("b", 64) + ".org",
		"255 bytes":              strings.Repeat("a", 64) + "@" + longHost(255-64-1),
		"ten megabytes":          strings.Repeat("a", 10<<20) + "@example.org",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := domain.ParseEmail(text)
			requireCode(t, domain.CodeInvalidEmail, err)
		})
	}
}

func TestEmailKeyFoldsCase(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ada@example.org", domain.Email("ADA@example.org").Key())
}

func TestAMailboxHasManyAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []domain.Email{
		"ada@example.org", "ADA@example.org", "ada+1@example.org", "a.d.a@example.org", "Ad.a+x.y+z@EXAMPLE.org",
	} {
		require.Equal(t, "ada@example.org", address.Mailbox(), address)
	}
	require.Equal(t, domain.Email("ada@gmail.com").Mailbox(), domain.Email("A.da+1@googlemail.com").Mailbox())
	require.Equal(t, "+1@example.org", domain.Email("+1@example.org").Mailbox())
	require.NotEqual(t, domain.Email("ada@example.org").Mailbox(), domain.Email("ada@example.com").Mailbox())
	require.NotEqual(t, domain.Email("ada@a.example.org").Mailbox(), domain.Email("ada@aexample.org").Mailbox())
}

func FuzzParseEmail(f *testing.F) {
	f.Add("ada@example.org")
	f.Add("Ada <ada@example.org>\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		email, err := domain.ParseEmail(text)
		if err != nil {
			return
		}
		again, err := domain.ParseEmail(string(email))
		require.NoError(t, err, "what was parsed parses")
		require.Equal(t, email, again)
		require.NotContains(t, string(email), "\n")
	})
}

func TestParseNameAccepts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]domain.Name{
		"Ada":                       "Ada",
		"  Ada Lovelace \t":         "Ada Lovelace",
		"Ænne 李小龙 محمد":             "Ænne 李小龙 محمد",
		"क्\u200dष":                 "क्\u200dष",
		"علی\u200cرضا":              "علی\u200cرضا",
		"രാജന്\u200d":               "രാജന്\u200d",
		"👩\u200d💻 👩🏽\u200d🚀":        "👩\u200d💻 👩🏽\u200d🚀",
		"葛\U000e0100飾":              "葛\U000e0100飾", // after the Han letter it selects
		"❤\ufe0f":                   "❤\ufe0f",      // after the character it selects
		"Marie\u00a0Curie":          "Marie\u00a0Curie",
		"https://example.com/?a=b":  "https://example.com/?a=b", // a name is data
		"<script>alert(1)</script>": "<script>alert(1)</script>",
		"{{.Secret}}":               "{{.Secret}}",
		"Robert'); DROP TABLE--":    "Robert'); DROP TABLE--",
		strings.Repeat("ü", 200):    domain.Name(strings.Repeat("ü", 200)),
	} {
		got, err := domain.ParseName(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
}

func TestParseNameRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":               "",
		"blanks":              " \t\u00a0\u2003",
		"201 characters":      strings.Repeat("ü", 201),
		"line break":          "Ada\nLovelace",
		"escape":              "\x1b[31mAda",
		"line separator":      "Ada\u2028Lovelace",
		"invalid UTF-8":       "Ada\xff",
		"replacement":         "Ada\ufffd",
		"invisible":           "\u200b\u200d",
		"blank and invisible": "\u200b \u2060",
		"hangul filler":       "\u3164",
		"grapheme joiner":     "\u034f",
		"variation selectors": "\ufe0f\U000e0100",
		"braille blank":       "\u2800",

		"right-to-left override": "gpj.\u202eexe",
		"isolate":                "\u2066Ada\u2069",
		"right-to-left mark":     "Ada\u200f",
		"zero-width space":       "A\u200bda",
		"byte order mark":        "A\ufeffda",
		"soft hyphen":            "A\u00adda",
		"next line":              "Ada\u0085Lovelace",
		"delete character":       "Ada\x7f",
		"control sequence":       "Ada\u009b31m",
		"tag character":          "Ada\U000e0041",
		"private use":            "Ada\ue000",
		"unassigned":             "Ada\u0378",
		"noncharacter":           "Ada\ufffe",
		"joiner in Latin":        "A\u200dda",
		"non-joiner in Cyrillic": "А\u200cда",
		"joiner first":           "\u200dक",
		"joiner behind a space":  "क \u200dष",
		"two joiners":            "क्\u200d\u200dष",
		"joiner behind a digit":  "1\u200d",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := domain.ParseName(text)
			requireCode(t, domain.CodeInvalidName, err)
		})
	}
}

func TestErrorsAreComparedByCode(t *testing.T) {
	t.Parallel()
	err := error(&domain.Error{Code: domain.CodeEmailTaken, Field: "email", Message: "is taken"})
	require.ErrorIs(t, err, &domain.Error{Code: domain.CodeEmailTaken})
	require.NotErrorIs(t, err, &domain.Error{Code: domain.CodeInvalidEmail})
	require.Equal(t, "email_taken: email: is taken", err.Error())
	err = &domain.Error{Code: domain.CodeUserNotFound, Message: "no such user"}
	require.Equal(t, "user_not_found: no such user", err.Error())
}
