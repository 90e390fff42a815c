package web

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/google/uuid"
)

// exchange is what this package knows about one request and its answer. It travels in the request's context.
type exchange struct {
	id     string // names the request in the log and in the answer
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
	return &exchange{id: newRequestID(), log: log, config: config}
}

func (x *exchange) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// newRequestID never fails a request: without randomness there are worse problems than an empty name.
func newRequestID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil.String()
	}
	return id.String()
}
