package web

import (
	"fmt"
	"time"
)

// An Error is an answer: what the client is told, and beside it, for the log alone, the cause. Detail and Fields never
// repeat what the client sent.
type Error struct {
	Status     int
	Code       Code
	Detail     string // one sentence for a person; empty means that the title says it all
	Fields     []Field
	RetryAfter time.Duration // rounded up to whole seconds; 0 means no Retry-After
	Cause      error         // logged, never sent; optional
}

// Field is one place that is wrong.
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

// typeBase with a code behind it names the problem's type. Nothing needs to be served there.
const typeBase = "https://example.com/twinbox/problems/"

// refuse makes an answer with one of the codes of this package.
func refuse(code Code, detail string, fields ...Field) *Error {
	return &Error{Status: statuses[code], Code: code, Detail: detail, Fields: fields}
}

// refuseFor makes an answer that will be another one after some time.
func refuseFor(wait time.Duration, code Code, detail string) *Error {
	answer := refuse(code, detail)
	answer.RetryAfter = wait
	return answer
}

// ParameterError says that a header or a path or query parameter is wrong.
func ParameterError(status int, code Code, parameter, detail string) *Error {
	return &Error{
		Status: status,
		Code:   code,
		Detail: fmt.Sprintf("The parameter %s %s.", parameter, detail),
		Fields: []Field{{Code: code, Parameter: parameter, Detail: detail}},
	}
}
