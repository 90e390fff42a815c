package customer

import (
	"time"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/eventing"
)

// Config is everything that Customer reads from its environment.
type Config struct {
	HTTPAddr  string        `env:"HTTP_ADDR" envDefault:"127.0.0.1:8080" format:"listen" doc:"listener of the Customer API"`
	AdminAddr string        `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8081" format:"listen" doc:"listener for /livez, /readyz and /metrics"`
	LogLevel  string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"least severe log lines to write"`
	LogFormat string        `env:"LOG_FORMAT" envDefault:"json" oneof:"text json" doc:"form of the log lines"`
	DrainFor  time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"25s" min:"1s" max:"10m" doc:"how long work under way may take after the first signal"`

	VerificationSecret config.Secret `env:"VERIFICATION_SECRET,required" min:"32" max:"4096" doc:"checks verification links; the same as Notification's"`
	IdempotencyTTL     time.Duration `env:"IDEMPOTENCY_TTL" envDefault:"168h" min:"1m" max:"8760h" doc:"how long an answer is kept for retries under its Idempotency-Key"`
	RequestTimeout     time.Duration `env:"REQUEST_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"for one request, its transaction included"`
	RateLimit          int           `env:"RATE_LIMIT" envDefault:"6000" max:"1000000000" doc:"requests per client address and minute; 0: no limit"`

	eventing.Config
}

// Validate checks what no single variable can.
func (c Config) Validate() []config.Problem { return config.Broken(c.Rules()) }

// Rules are the cross checks, those of all services first.
func (c Config) Rules() []config.Rule {
	return append(c.Config.Rules(), config.Rule{
		Variable: "SHUTDOWN_TIMEOUT", Holds: c.DrainFor >= c.RequestTimeout,
		Text:   "must not be shorter than REQUEST_TIMEOUT: a request under way is answered",
		Values: []any{c.DrainFor, c.RequestTimeout},
	})
}
