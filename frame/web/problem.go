package web

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Problem is the body of every error answer (RFC 9457).
type Problem struct {
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail"`
	Instance  string  `json:"instance"`
	Code      Code    `json:"code"`
	RequestID string  `json:"request_id"`
	TraceID   string  `json:"trace_id,omitempty"`
	Errors    []Field `json:"errors,omitempty"`
}

// WriteProblem answers with err. An [*Error] is answered as it is. Any other error goes to [Config.MapError]; what
// that does not know is 503 timeout when the request ran out of time, and 500 internal otherwise, with the error in
// the log and nothing of it in the answer.
//
// A program gets problem details, a person with a browser ([WantsPage]) a page that says the same.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	answer := x.answerTo(r.Context(), err)
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	header.Set("X-Request-Id", x.id)
	header.Del("ETag")
	if answer.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(seconds(answer.RetryAfter)))
	}
	if leavesBodyUnread(answer.Code) {
		header.Set("Connection", "close")
	}
	problem := x.problem(r.Context(), answer)
	if WantsPage(r) {
		WritePage(w, r, answer.Status, problemPage, problem)
		return
	}
	w.WriteHeader(answer.Status)
	body, err := json.Marshal(problem)
	if err != nil {
		return // cannot happen: the struct is strings and numbers
	}
	_, _ = w.Write(body) // the client may be gone; the error has no reader
}

// ProblemOf is what [WriteProblem] would answer, for an answer that has begun and has to say it in its own form, or is
// cut off. The error is in the log all the same.
func ProblemOf(r *http.Request, err error) Problem {
	x := exchangeOf(r)
	return x.problem(r.Context(), x.answerTo(r.Context(), err))
}

// answerTo finds the answer to err, and remembers both for the log.
func (x *exchange) answerTo(ctx context.Context, err error) *Error {
	answer := x.translate(ctx, err)
	x.code, x.cause, x.status = answer.Code, err, answer.Status
	return answer
}

func (x *exchange) problem(ctx context.Context, e *Error) Problem {
	detail := e.Detail
	if detail == "" {
		detail = e.Code.Title() + "."
	}
	p := Problem{
		Type:      typeBase + string(e.Code),
		Title:     e.Code.Title(),
		Status:    e.Status,
		Detail:    detail,
		Instance:  "urn:uuid:" + x.id,
		Code:      e.Code,
		RequestID: x.id,
		Errors:    e.Fields,
	}
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		p.TraceID = span.TraceID().String()
	}
	return p
}

// translate finds the answer to err.
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
		// The client has hung up, or the server cuts off what outlived the drain. In the second case the client may still
		// read the answer.
		return refuseFor(time.Second, CodeUnavailable, "The request was broken off.")
	}
	return refuse(CodeInternal, "A defect on this side; the log knows more under the request id.")
}

// leavesBodyUnread names the problems after which the rest of the body is still on the wire. To read on would be to
// give the sender what was just refused; to answer and keep the connection would take the rest for a request.
func leavesBodyUnread(code Code) bool {
	return code == CodeBodyTooLarge || code == CodeRequestTimeout || code == CodeBodyUnreadable
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
