package forwarder

import (
	"regexp"
	"time"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service"
)

type Config struct {
	AdminAddr    string `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8121" format:"listen" doc:"listener for /livez, /readyz and /metrics"`
	ReceiverAddr string `env:"RECEIVER_ADDR" doc:"listener of a receiver to try the forwarder with: POST takes what is sent, GET shows it; not set: none"`

	URL         string        `env:"FORWARD_URL" doc:"where each event is posted; not set: to the receiver of RECEIVER_ADDR"`
	Timeout     time.Duration `env:"FORWARD_TIMEOUT" envDefault:"5s" min:"100ms" max:"1m" doc:"for one request"`
	MaxAttempts int           `env:"FORWARD_MAX_ATTEMPTS" envDefault:"5" min:"1" max:"100" doc:"requests for one event, until it goes to FORWARD_DEAD_TOPIC"`
	RetryMin    time.Duration `env:"FORWARD_RETRY_MIN" envDefault:"500ms" min:"1ms" max:"30s" doc:"pause before the second request; it doubles up to 30s"`
	Instance    string        `env:"FORWARD_INSTANCE" doc:"name of this instance, the same after a restart, which then continues immediately where it was; not set: another one each time"`

	KafkaBrokers []string `env:"KAFKA_BROKERS,required" format:"address" doc:"brokers, host:port separated by commas"`
	Topic        string   `env:"FORWARD_TOPIC" envDefault:"customer.users.v1" doc:"topic whose events are forwarded"`
	Group        string   `env:"FORWARD_GROUP" envDefault:"twinbox.forwarder" doc:"consumer group, and the consumer in whose name events are remembered"`
	DeadTopic    string   `env:"FORWARD_DEAD_TOPIC" envDefault:"dlq.forwarder.customer.users.v1" doc:"topic for what could not be delivered; it is created with one partition"`

	NATSURL string        `env:"NATS_URL" envDefault:"nats://127.0.0.1:4222" doc:"NATS server with JetStream"`
	Bucket  string        `env:"NATS_BUCKET" envDefault:"twinbox-forwarder" doc:"key-value bucket in which delivered events are remembered"`
	TTL     time.Duration `env:"NATS_TTL" envDefault:"24h" min:"1m" max:"8760h" doc:"for how long"`

	LogLevel  string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"least severe log lines to write"`
	LogFormat string        `env:"LOG_FORMAT" envDefault:"json" oneof:"text json" doc:"form of the log lines"`
	DrainFor  time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"25s" min:"1s" max:"10m" doc:"how long work under way may take after the first signal"`
}

var isWeb = regexp.MustCompile(`^https?://[^/]`)

func (c Config) Rules() []config.Rule {
	return []config.Rule{{
		Variable: "FORWARD_URL", Holds: c.URL != "" || c.ReceiverAddr != "",
		Text: "is missing, and there is no RECEIVER_ADDR",
	}, {
		Variable: "FORWARD_URL", Holds: c.URL == "" || isWeb.MatchString(c.URL),
		Text: "must begin with http:// or https:// and a host: no event could be posted",
	}, {
		Variable: "FORWARD_DEAD_TOPIC", Holds: c.DeadTopic != c.Topic,
		Text: "is FORWARD_TOPIC: what failed would be forwarded again and again",
	}, {
		Variable: "SHUTDOWN_TIMEOUT", Holds: c.DrainFor >= c.Timeout,
		Text: "must not be shorter than FORWARD_TIMEOUT: a request under way is waited for",
	}}
}

func (c Config) settings() service.Settings {
	return service.Settings{AdminAddr: c.AdminAddr, LogLevel: c.LogLevel, LogFormat: c.LogFormat}
}
