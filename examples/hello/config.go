package hello

import (
	"time"

	"example.com/twinbox/examples/hello/contract"
	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

type Config struct {
	HTTPAddr       string        `env:"HTTP_ADDR" envDefault:"127.0.0.1:8130" format:"listen" doc:"listener of the API"`
	AdminAddr      string        `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8131" format:"listen" doc:"listener for /livez, /readyz and /metrics"`
	RequestTimeout time.Duration `env:"REQUEST_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"for one request, its transaction included"`
	Word           string        `env:"GREETING" envDefault:"Welcome" oneof:"Welcome Good-day" doc:"how a greeting begins"`

	eventing.Config
}

func (c Config) Listeners() service.Listeners {
	return service.Listeners{Admin: c.AdminAddr, API: c.HTTPAddr}
}

func (c Config) Topics() []kafka.Topic { return c.Config.Topics(contract.TopicHello) }

func (c Config) Rules() []config.Rule {
	return c.APIRules(c.RequestTimeout)
}
