package customer

import (
	"net/netip"
	"time"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/web"
)

// Config is Customer's configuration.
type Config struct {
	HTTPAddr  string `env:"HTTP_ADDR" envDefault:"127.0.0.1:8080" format:"listen" doc:"listener of the Customer API"`
	AdminAddr string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8081" format:"listen" doc:"listener for /livez, /readyz and /metrics"`

	VerificationSecret config.Secret  `env:"VERIFICATION_SECRET,required" min:"32" max:"4096" doc:"checks verification links; the same as Notification's"`
	IdempotencyTTL     time.Duration  `env:"IDEMPOTENCY_TTL" envDefault:"168h" min:"1m" max:"8760h" doc:"how long an answer is kept for retries under its Idempotency-Key"`
	RequestTimeout     time.Duration  `env:"REQUEST_TIMEOUT" envDefault:"10s" min:"100ms" max:"5m" doc:"for one request, its transaction included"`
	MaxConnections     int            `env:"HTTP_MAX_CONNECTIONS" envDefault:"0" max:"1000000" doc:"open connections of the Customer API; more wait; 0: a quarter of the descriptors that the process may open, at most 10000"`
	RateLimit          int            `env:"RATE_LIMIT" envDefault:"6000" max:"1000000000" doc:"requests per client and minute, to one instance; a client is an IPv4 address or an IPv6 /64; 0: clients are not limited, nor are their sign-ups"`
	TrustedProxies     []netip.Prefix `env:"TRUSTED_PROXIES" format:"network" doc:"networks (CIDR) of the proxies in front of the service: the client is the last address in X-Forwarded-For that is not one of theirs; an entry with a port is not read; unset: the connection's other end, so behind a proxy all people are one client"`
	SignupsPerMailbox  int            `env:"SIGNUPS_PER_MAILBOX" envDefault:"5" max:"1000000" doc:"sign-ups per mailbox and day, over all instances; ada+x@ and a.da@ are the mailbox of ada@; beyond it 429; 0: no limit"`
	SignupsPerClient   int            `env:"SIGNUPS_PER_CLIENT" envDefault:"1000" max:"1000000" doc:"sign-ups per client and hour, over all instances; beyond it 429; 0, or RATE_LIMIT=0: no limit"`

	eventing.Config
}

// Listeners returns the service's listeners.
func (c Config) Listeners() service.Listeners {
	return service.Listeners{Admin: c.AdminAddr, API: c.HTTPAddr}
}

// Topics returns the topics this service writes to.
func (c Config) Topics() []kafka.Topic {
	return c.Config.Topics(contract.TopicUsers)
}

// Without a rate limit the service does not tell clients apart.
func (c Config) allowances() Allowances {
	limits := Allowances{PerMailbox: c.SignupsPerMailbox, PerClient: c.SignupsPerClient}
	if c.RateLimit == 0 {
		limits.PerClient = 0
	}
	return limits
}

// Rules returns all cross checks.
func (c Config) Rules() []config.Rule {
	return append(c.APIRules(c.RequestTimeout), config.Rule{
		Variable: "HTTP_MAX_CONNECTIONS", Holds: c.MaxConnections <= web.Descriptors()/2,
		Text: "must be at most half of the descriptors that this process may open (ulimit -n): others need some",
	})
}
