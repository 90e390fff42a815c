package web

import (
	"net/http"
	"strings"
)

// Code is the stable name of a problem. Clients branch on it.
type Code string

// The codes that this package answers. A service adds its own.
const (
	CodeBodyMissing           Code = "body_missing"
	CodeBodyUnreadable        Code = "body_unreadable" // ended early, or broken chunks
	CodeBodyTooLarge          Code = "body_too_large"
	CodeRequestTimeout        Code = "request_timeout" // the body came too slowly
	CodeUnsupportedMediaType  Code = "unsupported_media_type"
	CodeUnsupportedEncoding   Code = "unsupported_content_encoding"
	CodeMalformedJSON         Code = "malformed_json"
	CodeNotAnObject           Code = "not_an_object"
	CodeDuplicateMember       Code = "duplicate_member"
	CodeUnknownMember         Code = "unknown_member"
	CodeMissingMember         Code = "missing_member"
	CodeWrongType             Code = "wrong_type"
	CodeMissingParameter      Code = "missing_parameter"
	CodeInvalidParameter      Code = "invalid_parameter"
	CodeIdempotencyKeyInvalid Code = "idempotency_key_invalid"
	CodePreconditionFailed    Code = "precondition_failed"
	CodeNotFound              Code = "not_found"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeRateLimited           Code = "rate_limited"
	CodeShuttingDown          Code = "shutting_down"
	CodeTimeout               Code = "timeout"
	CodeUnavailable           Code = "unavailable"
	CodeInternal              Code = "internal"
)

// statuses is what each code is answered with; api/openapi.yaml says the same.
var statuses = map[Code]int{
	CodeBodyMissing:           http.StatusBadRequest,
	CodeBodyUnreadable:        http.StatusBadRequest,
	CodeBodyTooLarge:          http.StatusRequestEntityTooLarge,
	CodeRequestTimeout:        http.StatusRequestTimeout,
	CodeUnsupportedMediaType:  http.StatusUnsupportedMediaType,
	CodeUnsupportedEncoding:   http.StatusUnsupportedMediaType,
	CodeMalformedJSON:         http.StatusBadRequest,
	CodeNotAnObject:           http.StatusBadRequest,
	CodeDuplicateMember:       http.StatusBadRequest,
	CodeUnknownMember:         http.StatusBadRequest,
	CodeMissingMember:         http.StatusBadRequest,
	CodeWrongType:             http.StatusBadRequest,
	CodeMissingParameter:      http.StatusBadRequest,
	CodeInvalidParameter:      http.StatusBadRequest,
	CodeIdempotencyKeyInvalid: http.StatusBadRequest,
	CodePreconditionFailed:    http.StatusPreconditionFailed,
	CodeNotFound:              http.StatusNotFound,
	CodeMethodNotAllowed:      http.StatusMethodNotAllowed,
	CodeRateLimited:           http.StatusTooManyRequests,
	CodeShuttingDown:          http.StatusServiceUnavailable,
	CodeTimeout:               http.StatusServiceUnavailable,
	CodeUnavailable:           http.StatusServiceUnavailable,
	CodeInternal:              http.StatusInternalServerError,
}

// Title is what a code means in words: the same for every problem with that code.
func (c Code) Title() string {
	words := strings.ReplaceAll(string(c), "_", " ")
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + strings.ReplaceAll(words[1:], "json", "JSON")
}
