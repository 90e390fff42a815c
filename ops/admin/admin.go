// Package admin offers what operates a service as a small JSON API on its admin listener: the outbox, the inbox, the
// dead letters and the mails of that one service. api/admin.yaml describes it; package client is its other end.
//
// The operations run in the service's own process, because a replay needs its handlers.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	deadletters "example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// Prefix is where the API lives.
const Prefix = "/admin/v1/"

// Config is one service as its operators see it.
type Config struct {
	// Service names it, and Environment says where it runs.
	Service, Environment string
	// Token is what a caller must know. Empty: the operations are off, and every call is told so.
	Token string
	// Pool is the service's database.
	Pool *pgxpool.Pool
	// Publisher is where republished events go.
	Publisher message.Publisher
	// Topics are those that the service writes to.
	Topics Topics
	// Restore confirms a restore of the database.
	Restore Restore
	// Consumers are the service's consumers.
	Consumers []Consumer
	// Paused, if set, is called when a consumer was paused, or goes on.
	Paused func()
	// Metrics hold the consumers' counts.
	Metrics prometheus.Gatherer
	// Mails is the list of mails; nil where the service sends none.
	Mails Mails
	// Verifier compares what the service wrote and consumed.
	Verifier Verifier
	// Cause says why the service waits.
	Cause func(context.Context) service.Cause
	// Tell tells what the service's own tables know of an id; nil: nothing beside its events.
	Tell Teller
	Log  *slog.Logger
}

const (
	shortTimeout = 10 * time.Second // for an operation that answers at once
	longTimeout  = time.Hour        // for one that streams
	maxBodyBytes = 2 << 20          // an event of the largest size, as base64 in JSON
)

// New returns the API. It answers everything below [Prefix].
func New(cfg Config) (http.Handler, error) {
	document, err := loadDocument()
	if err != nil {
		return nil, err
	}
	router, err := web.NewRouter(web.Config{
		MapError:     func(err error) *web.Error { return mapError(cfg.Service, err) },
		MaxBodyBytes: maxBodyBytes, RequestTimeout: longTimeout, CheckBody: document.checkBody,
	}, cfg.Log)
	if err != nil {
		return nil, err
	}
	router.Use(guard(cfg.Token), addressed(cfg.Service, cfg.Environment))
	store := deadletters.NewStore(cfg.Pool)
	s := server{
		outboxHandlers: outboxHandlers{cfg}, inboxHandlers: inboxHandlers{cfg, store, time.Now().UTC()},
		deadLetterHandlers: deadLetterHandlers{cfg, store}, mailHandlers: mailHandlers{cfg.Mails},
		consumerHandlers: consumerHandlers{cfg}, serviceHandlers: serviceHandlers{cfg},
		storyHandlers: storyHandlers{cfg, store}, verifyHandlers: verifyHandlers{cfg},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+adminapi.DocumentPath, web.Document(document.text))
	mux.Handle("/", adminapi.HandlerWithOptions(s, adminapi.ChiServerOptions{
		BaseRouter: router, Middlewares: []adminapi.MiddlewareFunc{document.parameters},
		ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			web.WriteProblem(w, r, parameterError(err))
		},
	}))
	return mux, nil
}

// server answers the operations, each resource's by a type of its own.
type server struct {
	outboxHandlers
	inboxHandlers
	deadLetterHandlers
	mailHandlers
	consumerHandlers
	serviceHandlers
	storyHandlers
	verifyHandlers
}

var _ adminapi.ServerInterface = server{}

// serviceHandlers answer what is about the service as a whole.
type serviceHandlers struct{ Config }

// guard lets through who knows the token. It compares hashes: their length says nothing about the token's.
func guard(token string) func(http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if token == "" {
				web.WriteProblem(w, r, errOff)
				return
			}
			scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			got := sha256.Sum256([]byte(given))
			if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="twinbox operations"`)
				web.WriteProblem(w, r, errUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// answer runs an operation that ends soon and answers with what it returns.
func answer[T any](w http.ResponseWriter, r *http.Request, operation func(ctx context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), shortTimeout)
	defer cancel()
	value, err := operation(ctx)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	web.WriteJSON(w, r, http.StatusOK, value)
}

// GetService answers GET /admin/v1/service.
func (s serviceHandlers) GetService(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(context.Context) (adminapi.Service, error) {
		return adminapi.Service{
			Name: s.Service, Environment: s.Environment, Consumers: s.consumerNames(), Mails: s.Mails != nil,
		}, nil
	})
}

func (c Config) consumerNames() []string {
	names := make([]string, len(c.Consumers))
	for i, consumer := range c.Consumers {
		names[i] = consumer.Name
	}
	return names
}
