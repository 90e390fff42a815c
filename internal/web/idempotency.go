package web

import (
	"net/http"
	"strings"
)

const maxIdempotencyKey = 255

// IdempotencyKey returns the key of a request that needs one: the content of the Idempotency-Key header, which is a
// quoted string of structured fields (RFC 8941) or, as most clients send it, a bare token. Both forms of one key are
// the same key. It is 1 to 255 printable ASCII characters; a bare one has no blanks, quotes or backslashes.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	switch len(values) {
	case 0:
		return "", ParameterError(http.StatusBadRequest, CodeIdempotencyKeyMissing, "Idempotency-Key", "is missing")
	case 1:
	default:
		return "", invalidKey("is there more than once")
	}
	text := strings.Trim(values[0], " \t")
	key, why := text, ""
	if strings.HasPrefix(text, `"`) {
		key, why = unquote(text)
	} else if strings.ContainsAny(text, " \"\\") {
		why = "is neither a quoted string nor a bare token"
	}
	switch {
	case why != "":
		return "", invalidKey(why)
	case key == "":
		return "", invalidKey("is empty")
	case len(key) > maxIdempotencyKey:
		return "", invalidKey("is longer than 255 characters")
	case strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }):
		return "", invalidKey("has characters other than printable ASCII")
	}
	return key, nil
}

func invalidKey(why string) *Error {
	return ParameterError(http.StatusBadRequest, CodeIdempotencyKeyInvalid, "Idempotency-Key", why)
}

// unquote reads a string of RFC 8941: only the quote and the backslash are escaped, and nothing follows the end.
func unquote(text string) (key, why string) {
	var content strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			if i != len(text)-1 {
				return "", "has something after its closing quote"
			}
			return content.String(), ""
		case '\\':
			i++
			if i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", "has an unknown escape"
			}
			content.WriteByte(text[i])
		default:
			content.WriteByte(c)
		}
	}
	return "", "has no closing quote"
}
