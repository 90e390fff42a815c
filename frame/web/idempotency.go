package web

import (
	"net/http"
	"strings"
)

const maxIdempotencyKey = 255

// IdempotencyKey returns the content of the Idempotency-Key header, "" where the request has none. The header is a
// quoted string of structured fields (RFC 8941) or, as most clients send it, a bare token. Both forms of one key are
// the same key. It is 1 to 255 printable ASCII characters; a bare one has no blanks, quotes or backslashes. A header
// without content is an error: its sender meant to be safe and is not.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header["Idempotency-Key"]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", InvalidIdempotencyKey("is there more than once")
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
		return "", InvalidIdempotencyKey(why)
	case key == "":
		return "", InvalidIdempotencyKey("is empty")
	case len(key) > maxIdempotencyKey:
		return "", InvalidIdempotencyKey("is longer than 255 characters")
	case strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }):
		return "", InvalidIdempotencyKey("has characters other than printable ASCII")
	}
	return key, nil
}

// InvalidIdempotencyKey says what is wrong with the header and what to put into it.
func InvalidIdempotencyKey(why string) *Error {
	answer := ParameterError(http.StatusBadRequest, CodeIdempotencyKeyInvalid, "Idempotency-Key", why)
	answer.Detail = "The request header Idempotency-Key " + why + ". Send 1 to 255 printable ASCII characters that name " +
		"this request, such as a UUID in double quotes, or leave the header out."
	return answer
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
