package local

import (
	"io"

	"example.com/twinbox/internal/config"
)

// Config describes one house. The zero value needs Dir alone and listens on free ports.
type Config struct {
	// Dir holds all state. One process at a time may use it.
	Dir string
	// Addresses to listen on. Default 127.0.0.1:0 each, a free port.
	CustomerAPI, CustomerAdmin, NotificationAdmin, Mailbox, SMTP, Kafka string

	// KafkaBrokers are those of a Kafka that runs elsewhere. Default: the embedded broker.
	KafkaBrokers string
	// PGBin holds initdb and postgres. Default: what is installed, else what is fetched.
	PGBin string
	// FetchPostgres fetches PostgreSQL even where it is installed.
	FetchPostgres bool
	// Settings are variables of the services, NAME=VALUE, that win over their defaults: "OUTBOX_POLL=10ms". What the
	// house itself decides, which is every address, is refused here.
	Settings []string

	// ByMake says that a person typed make run: advice about flags is then written for make.
	ByMake bool

	// Out receives the summary, Err warnings, errors and the progress of what takes long. Default: nothing is shown.
	Out, Err io.Writer
	// Colour allows escape sequences in the summary.
	Colour bool
	// Ready is called once, when both services are ready.
	Ready func(Addresses)
}

// Addresses says where the parts of a running house are.
type Addresses struct {
	CustomerAPI, CustomerAdmin, NotificationAdmin string        // host:port
	Mailbox, SMTP                                 string        // host:port
	KafkaBrokers                                  string        // host:port, separated by commas
	CustomerDB, NotificationDB                    string        // URLs for the superuser
	AdminToken                                    config.Secret // of both services' operations, another one at each start
}

func (c Config) withDefaults() Config {
	for _, l := range c.listeners() {
		if *l.addr == "" {
			*l.addr = "127.0.0.1:0"
		}
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Err == nil {
		c.Err = io.Discard
	}
	if c.Ready == nil {
		c.Ready = func(Addresses) {}
	}
	return c
}

// listener is one address the house listens on, with the flag that changes it.
type listener struct {
	name string
	flag string
	addr *string

	loopback bool // no other machine may reach it
}

func (c *Config) listeners() []listener {
	all := []listener{
		{"Customer API", "customer-addr", &c.CustomerAPI, false},
		{"Customer admin", "customer-admin-addr", &c.CustomerAdmin, false},
		{"Notification admin", "notification-admin-addr", &c.NotificationAdmin, false},
		{"mailbox page", "mailbox-addr", &c.Mailbox, true},
		{"SMTP", "smtp-addr", &c.SMTP, true},
	}
	if c.KafkaBrokers == "" {
		all = append(all, listener{"Kafka", "kafka-addr", &c.Kafka, false})
	}
	return all
}
