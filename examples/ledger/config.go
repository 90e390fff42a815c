package ledger

import (
	"time"

	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

type Config struct {
	HTTPAddr  string `env:"HTTP_ADDR" envDefault:"127.0.0.1:8110" format:"listen" doc:"listener of the Ledger API"`
	AdminAddr string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8111" format:"listen" doc:"listener for /livez, /readyz and /metrics"`

	IdempotencyTTL  time.Duration `env:"IDEMPOTENCY_TTL" envDefault:"168h" min:"1m" max:"8760h" doc:"how long an answer is kept for retries under its Idempotency-Key"`
	RequestTimeout  time.Duration `env:"REQUEST_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"for one request, its transactions included"`
	CommandAttempts int           `env:"COMMAND_ATTEMPTS" envDefault:"10" min:"1" max:"100" doc:"how often a credit without expected_version is decided anew when other commands on the account were faster; then 409"`

	eventing.Config
}

func (c Config) Listeners() service.Listeners {
	return service.Listeners{Admin: c.AdminAddr, API: c.HTTPAddr}
}

func (c Config) Topics() []kafka.Topic {
	return c.Config.Topics(contract.TopicAccounts)
}

func (c Config) Rules() []config.Rule {
	return c.APIRules(c.RequestTimeout)
}
