// Package local runs the whole system in one process: PostgreSQL as a child, a Kafka-protocol broker, a mailbox, and
// the services with their usual configuration. All state is in one folder and survives a sudden end of the process.
package local

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

// Config describes one stack. The zero value needs Dir alone and listens on free ports. Fields with a help text are
// flags of devstack run.
type Config struct {
	Dir string `help:"Folder of all state; one process at a time." default:".twinbox"`
	// Services maps services to their addresses. Default, here and below: 127.0.0.1:0, a free port.
	Services map[string]Listen `kong:"-"`
	// Extra are services in addition to the project's own.
	Extra []eventing.Described `kong:"-"`
	Only  []string             `kong:"-"`
	// Programs start in this order when all services listen. They stop before the services, in reverse.
	Programs []Program `kong:"-"`

	Mailbox string `help:"Page with the mails, loopback only." name:"mailbox-addr" default:"127.0.0.1:8025"`
	SMTP    string `help:"Where the mailbox accepts mails, loopback only." name:"smtp-addr" default:"127.0.0.1:1025"`
	Kafka   string `help:"Kafka broker." name:"kafka-addr" default:"127.0.0.1:9092"`

	KafkaBrokers string `help:"Use a Kafka elsewhere instead: its brokers." placeholder:"HOST:PORT,..."`
	// Settings override the services' defaults, except for the addresses and secrets that the stack decides.
	Settings []string `help:"Variable of the services; may be repeated." name:"set" sep:"none" placeholder:"NAME=VALUE"`
	Verbose  bool     `help:"Show everything that the parts log, as it is in their files; otherwise warnings and errors." short:"v" env:"TWINBOX_VERBOSE"`

	// Faults, if set, can break the ready stack. Each service is then a process.
	Faults *Faults `kong:"-"`
	// Out receives the summary, Err warnings, errors and progress. Default: both are discarded.
	Out   io.Writer       `kong:"-"`
	Err   io.Writer       `kong:"-"`
	Ready func(Addresses) `kong:"-"`
}

type Extension struct {
	Flags    any
	Commands any
	// Services are those that Add may add. Flags of devstack run have their addresses.
	Services []eventing.Described
	// Add adds services and programs, after the flags were read.
	Add func(cfg *Config)
}

type Program struct {
	Name      string
	Title     string
	Note      string
	Listeners []Listener
	// Run runs the program until ctx ends, from when all services listen, ready or not. It calls ready once, with the link
	// for the summary.
	Run func(ctx context.Context, at Addresses, log *slog.Logger, ready func(link string)) error
}

type Listener struct {
	Name     string
	Flag     string
	Addr     string
	Loopback bool // no other machine may reach it
}

// Listen has the addresses of one service, host:port.
type Listen struct {
	API   string // "" without an API
	Admin string
}

type Addresses struct {
	Dir           string   // of all state, absolute
	Names         []string // of the services, in the order of every output
	Services      map[string]Listen
	Programs      map[string]string // links by name, complete when the stack is ready
	Mailbox, SMTP string
	KafkaBrokers  string
	Databases     map[string]string // URLs for the superuser, by service
	AdminToken    config.Secret     // for all services, new at each start
	Instances     map[string]*eventing.Instance
}

// API returns the first API's address, "" before it listens.
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
	for _, s := range c.services() {
		listen := Listen{Admin: cmp.Or(given[s.Name].Admin, freePort)}
		if s.Unset().Reads("HTTP_ADDR") {
			listen.API = cmp.Or(given[s.Name].API, freePort)
		}
		c.Services[s.Name] = listen
	}
	c.Mailbox, c.SMTP, c.Kafka = cmp.Or(c.Mailbox, freePort), cmp.Or(c.SMTP, freePort), cmp.Or(c.Kafka, freePort)
	c.Out, c.Err = cmp.Or(c.Out, io.Discard), cmp.Or(c.Err, io.Discard)
	if c.Ready == nil {
		c.Ready = func(Addresses) {}
	}
	return c
}

func (c Config) listeners() []Listener {
	var all []Listener
	for _, s := range c.services() {
		listen := c.Services[s.Name]
		if listen.API != "" {
			all = append(all, Listener{title(s.Name) + " API", s.Name + "-addr", listen.API, false})
		}
		all = append(all, Listener{title(s.Name) + " admin", s.Name + "-admin-addr", listen.Admin, false})
	}
	for _, p := range c.Programs {
		all = append(all, p.Listeners...)
	}
	all = append(all,
		Listener{"mailbox page", "mailbox-addr", c.Mailbox, true}, Listener{"SMTP", "smtp-addr", c.SMTP, true})
	if c.KafkaBrokers == "" {
		all = append(all, Listener{"Kafka", "kafka-addr", c.Kafka, false})
	}
	return all
}

func (c Config) services() []eventing.Described {
	return slices.DeleteFunc(append(services.All(), c.Extra...), func(s eventing.Described) bool {
		return len(c.Only) > 0 && !slices.Contains(c.Only, s.Name)
	})
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
