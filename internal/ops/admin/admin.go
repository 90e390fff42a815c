// Package admin is the JSON API of api/admin.yaml. It runs in the service's own process, because a replay needs its
// handlers. Package client calls it.
package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/web"
)

// Prefix is where New's handler belongs.
const Prefix = "/admin/v1/"

// Config is one service as its operators see it.
type Config struct {
	// Service names it, Environment the place where it runs.
	Service, Environment string
	// Token authorizes callers. Empty: the operations are off, and every call is refused.
	Token     string
	Pool      *pgxpool.Pool
	Publisher relay.ContextPublisher
	Topics    Topics
	Records   Records
	Consumers []Consumer
	Metrics   prometheus.Gatherer
	Mails     *MailList                // nil: the service sends none
	Readiness func() service.Readiness // of /readyz, with the causes
	Tell      Teller                   // nil: the service's own tables know no id
	Log       *slog.Logger
}

const (
	shortTimeout = 10 * time.Second // for an operation that answers soon
	longTimeout  = time.Hour        // for one that streams
	maxBodyBytes = 2 << 20          // an event of the largest size, as base64 in JSON
)

// New returns the API.
func New(cfg Config) (http.Handler, error) {
	operations, err := readDocument()
	if err != nil {
		return nil, err
	}
	router := web.NewRouter(web.Config{
		MapError:     func(err error) *web.Error { return mapError(cfg.Service, err) },
		MaxBodyBytes: maxBodyBytes, RequestTimeout: longTimeout, CheckBody: checkBody(operations),
	}, cfg.Log)
	router.Use(addressed(cfg.Service, cfg.Environment), guard(cfg.Token))
	router.Get(adminapi.DocumentPath, web.Document(api.Admin))
	return router, mount(router, operations, handlersOf(cfg))
}

// guard asks for no token for what /metrics and /readyz show. Comparing hashes takes the same time for every token.
func guard(token string) func(http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == adminapi.StationsPath || r.URL.Path == adminapi.DocumentPath {
				next.ServeHTTP(w, r)
				return
			}
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

// The headers in which a request names its service, and every answer its sender.
const (
	HeaderService     = "Twinbox-Service"
	HeaderEnvironment = "Twinbox-Environment"
)

// addressed checks each request: after a separate check the address could lead elsewhere.
func addressed(service, environment string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(HeaderService, service)
			w.Header().Set(HeaderEnvironment, environment)
			for _, check := range []struct {
				header, own string
				code        web.Code
			}{
				{HeaderService, service, "wrong_service"}, {HeaderEnvironment, environment, "wrong_environment"},
			} {
				if given := r.Header.Values(check.header); len(given) > 1 || len(given) == 1 && given[0] != check.own {
					web.WriteProblem(w, r, problem(http.StatusMisdirectedRequest, check.code, fmt.Sprintf(
						"This is %s in the environment %s; the request is meant for another one.", service, environment)))
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

func (s handlers) service(context.Context, nothing) (adminapi.Service, error) {
	return adminapi.Service{Name: s.Service, Environment: s.Environment}, nil
}

func (c Config) consumerNames() []string {
	names := make([]string, len(c.Consumers))
	for i, consumer := range c.Consumers {
		names[i] = consumer.Name
	}
	return names
}

func (s handlers) audit(ctx context.Context, asked audit.Filter) (adminapi.Actions, error) {
	limit := cmp.Or(asked.Limit, defaultLimit)
	asked.Limit = limit + 1
	number, isOwn := strings.CutPrefix(asked.Subject, s.Service+"/")
	if isOwn && (asked.Kind == "" || asked.Kind == deadletter.Kind) {
		asked.Kind, asked.Subject = deadletter.Kind, number
	}
	found, err := audit.Find(ctx, s.Pool, asked)
	return adminapi.Actions{Items: found[max(0, len(found)-limit):], More: len(found) > limit}, err
}
