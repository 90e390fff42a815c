package local

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

// Config describes one stack. The zero value needs Dir alone and listens on free ports.
type Config struct {
	// Dir holds all state. One process at a time may use it.
	Dir string
	// Services are those to run, by name, with what each listens on: by default 127.0.0.1:0, a free port, here and below.
	// Default: all.
	Services map[string]Listen
	// Examples are run beside the project's own services, those that Services names.
	Examples []eventing.Described
	// Programs are run beside the services, and begin when these are ready.
	Programs []Program
	// Console is the operators' page.
	Console string
	// Mailbox is the page with the mails, SMTP where they are sent, Kafka the embedded broker.
	Mailbox, SMTP, Kafka string

	// KafkaBrokers are those of a Kafka that runs elsewhere. Default: the embedded broker.
	KafkaBrokers string
	// PGBin holds initdb and postgres. Default: what is installed, else what is fetched.
	PGBin string
	// FetchPostgres fetches PostgreSQL even where it is installed.
	FetchPostgres bool
	// Settings are variables of the services, NAME=VALUE, that win over their defaults: "OUTBOX_POLL=10ms". What the
	// stack itself decides, which is every address, is refused here.
	Settings []string

	// Faults, if set, can break the stack when it is ready. Each service is a process of its own then.
	Faults *Faults

	// ByMake says that a person typed make run: advice about flags is then written for make.
	ByMake bool

	// Out receives the summary, Err warnings, errors and the progress of what takes long. Default: nothing is shown.
	Out, Err io.Writer
	// Verbose shows everything that the parts log. Default: warnings and errors, of one message a line a minute.
	Verbose bool
	// Colour allows escape sequences in the summary.
	Colour bool
	// Ready is called once, when all services are ready.
	Ready func(Addresses)
}

// Program is one that is no service of the stack's kind: it has no database here.
type Program struct {
	Name  string
	Shows string // what people find at its address, in a word
	// Listens are what it listens on.
	Listens []ProgramListen
	// Run runs it until ctx ends, with state of its own below dir. It announces where it is once it is ready.
	Run func(ctx context.Context, dir string, at Addresses, host service.Host) error
}

// ProgramListen is an address of a program, with the flag that changes it.
type ProgramListen struct{ Name, Flag, Addr string }

// Listen are the addresses of one service, host:port each.
type Listen struct {
	API   string // for those that have one
	Admin string
}

// Addresses says where the parts of a running stack are.
type Addresses struct {
	Services      map[string]Listen // by the service's name
	Programs      []string          // host:port of what each shows, in the order of Config
	Console       string
	Mailbox, SMTP string            // host:port
	KafkaBrokers  string            // host:port, separated by commas
	Databases     map[string]string // URLs for the superuser, by the service's name
	AdminToken    config.Secret     // of all services' operations, another one at each start
}

// API is where people reach the system: that of the first service that has one.
func (a Addresses) API() string {
	for _, name := range services.Names() {
		if api := a.Services[name].API; api != "" {
			return api
		}
	}
	return ""
}

const freePort = "127.0.0.1:0"

func (c Config) withDefaults() Config {
	given := c.Services
	c.Services = map[string]Listen{}
	for _, s := range c.all() {
		if _, wanted := given[s.Name]; !wanted && given != nil {
			continue
		}
		listen := Listen{Admin: cmp.Or(given[s.Name].Admin, freePort)}
		if s.Unset().Reads("HTTP_ADDR") {
			listen.API = cmp.Or(given[s.Name].API, freePort)
		}
		c.Services[s.Name] = listen
	}
	c.Mailbox, c.SMTP, c.Kafka = cmp.Or(c.Mailbox, freePort), cmp.Or(c.SMTP, freePort), cmp.Or(c.Kafka, freePort)
	c.Console = cmp.Or(c.Console, freePort)
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

// listener is one address the stack listens on, with the flag that changes it.
type listener struct {
	name string
	flag string
	addr string

	loopback bool // no other machine may reach it
}

// withFlags are the services whose addresses have flags of their own; those of others are set by their names.
var withFlags = []string{"customer", "notification"}

func (c Config) listeners() []listener {
	var all []listener
	for _, s := range c.services() {
		listen := c.Services[s.Name]
		api, admin := s.Name+"-addr", s.Name+"-admin-addr"
		if !slices.Contains(withFlags, s.Name) {
			api, admin = "service-addr="+s.Name, "service-admin-addr="+s.Name
		}
		if listen.API != "" {
			all = append(all, listener{title(s.Name) + " API", api, listen.API, false})
		}
		all = append(all, listener{title(s.Name) + " admin", admin, listen.Admin, false})
	}
	for _, p := range c.Programs {
		for _, l := range p.Listens {
			all = append(all, listener{l.Name, l.Flag, l.Addr, false})
		}
	}
	all = append(all, listener{"console", "console-addr", c.Console, true})
	all = append(all,
		listener{"mailbox page", "mailbox-addr", c.Mailbox, true}, listener{"SMTP", "smtp-addr", c.SMTP, true})
	if c.KafkaBrokers == "" {
		all = append(all, listener{"Kafka", "kafka-addr", c.Kafka, false})
	}
	return all
}

// all are the services that may run.
func (c Config) all() []eventing.Described {
	all := services.All()
	all = append(all, c.Examples...)
	return all
}

// services are those that run.
func (c Config) services() []eventing.Described {
	return slices.DeleteFunc(c.all(), func(s eventing.Described) bool {
		_, runs := c.Services[s.Name]
		return !runs
	})
}

// title is a service's name as it begins a line.
func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
