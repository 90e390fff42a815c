package web

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

const maxIdempotencyKey = 255

// idempotencyKey is a quoted string of structured fields, in which only the quote and the backslash are escaped, or a
// bare token.
var (
	idempotencyKey = regexp.MustCompile(`^[ \t]*(?:"((?:[ !#-\[\]-~]|\\["\\])*)"|([!#-\[\]-~]+))[ \t]*$`)
	unescape       = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
)

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
	found := idempotencyKey.FindStringSubmatch(values[0])
	if found == nil {
		return "", InvalidIdempotencyKey("is neither a quoted string nor a bare token, in printable ASCII")
	}
	key := unescape.Replace(found[1] + found[2])
	if key == "" || len(key) > maxIdempotencyKey {
		return "", InvalidIdempotencyKey("is empty, or longer than 255 characters")
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

// ETag is the strong validator of a representation of something at a version: "3", or "3-variant" where a version has
// more than one representation, as a profile has that also shows what other aggregates did. Variant is letters,
// digits and hyphens, or empty.
func ETag(version int64, variant string) string {
	tag := strconv.FormatInt(version, 10)
	if variant != "" {
		tag += "-" + variant
	}
	return `"` + tag + `"`
}

// NotModified sets the ETag header and, when the client has this very representation, answers 304 and returns true:
// the handler is done. Only for GET and HEAD.
func NotModified(w http.ResponseWriter, r *http.Request, etag string) bool {
	w.Header().Set("ETag", etag)
	for _, tag := range list(r.Header["If-None-Match"]) {
		// The comparison is the weak one: a cache that weakened the tag still has the same bytes.
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// CheckIfMatch compares an If-Match header, where there is one, with the version that the body expects. An ETag of
// that version matches in every variant; "*" matches always. It returns a 412 when none matches, which includes tags
// that are no tags: a client that sent a condition must not be treated as if it had not.
func CheckIfMatch(r *http.Request, expected int64) error {
	header, given := r.Header["If-Match"]
	if !given {
		return nil
	}
	bare := strings.TrimSuffix(ETag(expected, ""), `"`)
	for _, tag := range list(header) {
		if rest, is := strings.CutPrefix(tag, bare); tag == "*" || is && (rest == `"` ||
			strings.HasPrefix(rest, "-") && strings.HasSuffix(rest, `"`)) {
			return nil
		}
	}
	return ParameterError(http.StatusPreconditionFailed, CodePreconditionFailed, "If-Match",
		"is not an ETag of the expected version")
}

// list splits a list header. Our tags hold no comma, so a tag with one inside falls into parts that match nothing.
func list(values []string) []string {
	entries := strings.Split(strings.Join(values, ","), ",")
	for i, entry := range entries {
		entries[i] = strings.TrimSpace(entry)
	}
	return entries
}
