package web

import (
	"net/http"
	"strconv"
	"strings"
)

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
	for _, tag := range entityTags(r.Header["If-None-Match"]) {
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
	version := strconv.FormatInt(expected, 10)
	for _, tag := range entityTags(header) {
		inner, isQuoted := strings.CutPrefix(tag, `"`)
		inner, _, _ = strings.Cut(strings.TrimSuffix(inner, `"`), "-")
		if tag == "*" || isQuoted && strings.HasSuffix(tag, `"`) && inner == version {
			return nil
		}
	}
	return ParameterError(http.StatusPreconditionFailed, CodePreconditionFailed, "If-Match",
		"is not an ETag of the expected version")
}

// entityTags splits a list header. Our tags hold no comma, so a tag with one inside falls into parts that match
// nothing.
func entityTags(values []string) []string {
	var tags []string
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tags = append(tags, strings.TrimSpace(tag))
		}
	}
	return tags
}
