package web

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"example.com/twinbox/engine/cloudevent"
)

// exchange is what this package knows about one request and its answer. It travels in the request's context.
type exchange struct {
	id     string // names the request in the log and in the answer
	follow string // correlation id of all that follows from the request: the client's, or id
	log    *slog.Logger
	config Config
	client string // see [ClientOf]
	cause  error  // of the problem that was answered, for the log
	code   Code
	status int // of that problem; the answer's own where it had not begun
}

type exchangeKey struct{}

// exchangeOf returns the exchange that the router began, or a fresh one with defaults for a handler that is used
// without the router.
func exchangeOf(r *http.Request) *exchange {
	if x, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return newExchange(Config{}.WithDefaults(), slog.Default())
}

func newExchange(config Config, log *slog.Logger) *exchange {
	id := newRequestID()
	return &exchange{id: id, follow: id, log: log, config: config}
}

func (x *exchange) in(ctx context.Context) context.Context {
	ctx = cloudevent.WithCause(ctx, cloudevent.Cause{CorrelationID: x.follow})
	return context.WithValue(ctx, exchangeKey{}, x)
}

// correlation takes the id under which the client follows what it asks for, if it is one that logs and headers can
// carry: letters, digits and a few marks, and not too long.
func (x *exchange) correlation(asked string) {
	const marks = "-_.:/+="
	strange := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(marks, r)
	}
	if asked != "" && len(asked) <= maxCorrelationID && !strings.ContainsFunc(asked, strange) {
		x.follow = asked
	}
}

const maxCorrelationID = 128

// newRequestID never fails a request: without randomness there are worse problems than an empty name.
func newRequestID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil.String()
	}
	return id.String()
}
