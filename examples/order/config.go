package order

import (
	"time"

	"example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/lease"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

type Config struct {
	HTTPAddr  string `env:"HTTP_ADDR" envDefault:"127.0.0.1:8100" format:"listen" doc:"listener of the Order API"`
	AdminAddr string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8101" format:"listen" doc:"listener for /livez, /readyz and /metrics"`

	PayWithin      time.Duration `env:"PAY_WITHIN" envDefault:"15m" min:"100ms" max:"8760h" doc:"how long an order waits for its payment before it is cancelled"`
	IdempotencyTTL time.Duration `env:"IDEMPOTENCY_TTL" envDefault:"168h" min:"1m" max:"8760h" doc:"how long an answer is kept for retries under its Idempotency-Key"`
	RequestTimeout time.Duration `env:"REQUEST_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"for one request, its transaction included"`

	SMTP     mail.Config    `envPrefix:"SMTP_"`
	MailFrom string         `env:"MAIL_FROM" envDefault:"Orders <no-reply@example.com>" format:"mail" doc:"sender of every receipt"`
	Mail     lease.Settings `envPrefix:"MAIL_"`

	eventing.Config
}

func (c Config) Listeners() service.Listeners {
	return service.Listeners{Admin: c.AdminAddr, API: c.HTTPAddr}
}

func (c Config) Topics() []kafka.Topic {
	return c.Config.Topics(contract.TopicOrders, contract.TopicTimers)
}

func (c Config) Rules() []config.Rule {
	return append(c.APIRules(c.RequestTimeout), c.SMTP.Rules(c.Mail, c.DrainFor)...)
}
