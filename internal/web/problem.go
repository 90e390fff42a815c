package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Code is a problem's stable name.
type Code string

// A service adds its own codes.
const (
	CodeBodyMissing           Code = "body_missing"
	CodeBodyUnreadable        Code = "body_unreadable" // ended early, or broken chunks
	CodeBodyTooLarge          Code = "body_too_large"
	CodeRequestTimeout        Code = "request_timeout" // the body came too slowly
	CodeUnsupportedMediaType  Code = "unsupported_media_type"
	CodeUnsupportedEncoding   Code = "unsupported_content_encoding"
	CodeMalformedJSON         Code = "malformed_json"
	CodeNotAnObject           Code = "not_an_object"
	CodeUnknownMember         Code = "unknown_member"
	CodeMissingMember         Code = "missing_member"
	CodeWrongType             Code = "wrong_type"
	CodeMissingParameter      Code = "missing_parameter"
	CodeInvalidParameter      Code = "invalid_parameter"
	CodeIdempotencyKeyInvalid Code = "idempotency_key_invalid"
	CodePreconditionFailed    Code = "precondition_failed"
	CodeNotFound              Code = "not_found"
	CodeMethodNotAllowed      Code = "method_not_allowed"
	CodeHostNotAllowed        Code = "host_not_allowed"
	CodeRateLimited           Code = "rate_limited"
	CodeShuttingDown          Code = "shutting_down"
	CodeTimeout               Code = "timeout"
	CodeUnavailable           Code = "unavailable"
	CodeInternal              Code = "internal"
)

// statuses are those other than 400, as in api/openapi.yaml.
var statuses = map[Code]int{
	CodeBodyTooLarge:         http.StatusRequestEntityTooLarge,
	CodeRequestTimeout:       http.StatusRequestTimeout,
	CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	CodeUnsupportedEncoding:  http.StatusUnsupportedMediaType,
	CodePreconditionFailed:   http.StatusPreconditionFailed,
	CodeNotFound:             http.StatusNotFound,
	CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	CodeHostNotAllowed:       http.StatusMisdirectedRequest,
	CodeRateLimited:          http.StatusTooManyRequests,
	CodeShuttingDown:         http.StatusServiceUnavailable,
	CodeTimeout:              http.StatusServiceUnavailable,
	CodeUnavailable:          http.StatusServiceUnavailable,
	CodeInternal:             http.StatusInternalServerError,
}

var inWords = strings.NewReplacer("_", " ", "json", "JSON")

func (c Code) Title() string {
	words := inWords.Replace(string(c))
	first := min(1, len(words))
	return strings.ToUpper(words[:first]) + words[first:]
}

// An Error is an answer, without the client's input.
type Error struct {
	Status     int           `json:"status"`
	Code       Code          `json:"code"`
	Detail     string        `json:"detail"` // one sentence for a person; empty: the title
	Fields     []Field       `json:"errors,omitempty"`
	RetryAfter time.Duration `json:"-"` // rounded up to whole seconds; 0: no Retry-After
	Cause      error         `json:"-"` // logged, never sent; optional
}

// Field is one wrong place.
type Field struct {
	Code      Code   `json:"code"`
	Detail    string `json:"detail"`
	Pointer   string `json:"pointer,omitempty"`   // into the body: a JSON Pointer as a URI fragment, "#/email"
	Parameter string `json:"parameter,omitempty"` // a header, or a path or query parameter
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%d %s: %v", e.Status, e.Code, e.Cause)
	}
	return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Detail)
}

func (e *Error) Unwrap() error { return e.Cause }

func refuse(code Code, detail string, fields ...Field) *Error {
	return &Error{Status: cmp.Or(statuses[code], http.StatusBadRequest), Code: code, Detail: detail, Fields: fields}
}

func refuseFor(wait time.Duration, code Code, detail string) *Error {
	answer := refuse(code, detail)
	answer.RetryAfter = wait
	return answer
}

// ParameterError is about a wrong header or parameter.
func ParameterError(status int, code Code, parameter, detail string) *Error {
	return &Error{
		Status: status,
		Code:   code,
		Detail: fmt.Sprintf("The parameter %s %s.", parameter, detail),
		Fields: []Field{{Code: code, Parameter: parameter, Detail: detail}},
	}
}

// MemberError is about a wrong value in the body.
func MemberError(status int, code Code, member, detail string) *Error {
	return &Error{
		Status: status, Code: code, Detail: "The " + member + " " + detail + ".",
		Fields: []Field{{Code: code, Pointer: "#/" + member, Detail: detail}},
	}
}

// Problem is the body of every error answer (RFC 9457).
type Problem struct {
	Error
	Type      string `json:"type"`
	Title     string `json:"title"`
	Instance  string `json:"instance"`
	RequestID string `json:"request_id"`
	TraceID   string `json:"trace_id,omitempty"`
}

// No document is served there.
const typeBase = "https://example.com/twinbox/problems/"

// WriteProblem answers with an [*Error], or with [Config.MapError]'s translation of err. An unknown error becomes 503
// timeout after the request's deadline, else 500 internal; only the log has its text. A browser gets a page.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	problem := ProblemOf(r, err)
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	header.Set("X-Request-Id", problem.RequestID)
	header.Del("ETag")
	if problem.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(problem.RetryAfter.Seconds()))))
	}
	switch problem.Code {
	case CodeBodyTooLarge, CodeRequestTimeout, CodeBodyUnreadable:
		// The rest of the body must not be taken for a request.
		header.Set("Connection", "close")
	}
	if WantsPage(r) {
		WritePage(w, r, problem.Status, problemPage, problem)
		return
	}
	w.WriteHeader(problem.Status)
	_ = json.NewEncoder(w).Encode(problem) // the client may be gone
}

// ProblemOf returns the problem that [WriteProblem] would send, and logs the error.
func ProblemOf(r *http.Request, err error) Problem {
	x := exchangeOf(r)
	answer := x.translate(r.Context(), err)
	x.code, x.cause, x.status = answer.Code, err, answer.Status
	p := Problem{
		Error:     *answer,
		Type:      typeBase + string(answer.Code),
		Title:     answer.Code.Title(),
		Instance:  "urn:uuid:" + x.id,
		RequestID: x.id,
	}
	p.Detail = cmp.Or(p.Detail, p.Title+".")
	if span := trace.SpanContextFromContext(r.Context()); span.HasTraceID() {
		p.TraceID = span.TraceID().String()
	}
	return p
}

func (x *exchange) translate(ctx context.Context, err error) *Error {
	if answer, ok := errors.AsType[*Error](err); ok {
		return answer
	}
	if mapped := x.config.MapError(err); mapped != nil {
		return mapped
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return refuseFor(time.Second, CodeTimeout, "The request took too long.")
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		// The client has gone, or the drain cancels; then it may still read the answer.
		return refuseFor(time.Second, CodeUnavailable, "The request was broken off.")
	}
	return refuse(CodeInternal, "A defect on this side; the log knows more under the request id.")
}
