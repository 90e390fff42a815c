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

// Config describes one stack. The zero value needs Dir alone and listens on free ports.
type Config struct {
	// Dir holds all state. One process at a time may use it.
	Dir string
	// Services are those to run, by name, with what each listens on: by default 127.0.0.1:0, a free port, here and below.
	// Default: all.
	Services map[string]Listen
	// Extra are services in addition to the project's own. If Services is set, it has to name them as well.
	Extra []eventing.Described
	// Programs start in this order when all services are ready, and stop before these, in reverse.
	Programs []Program
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

// Program runs next to the services. It has no database here.
type Program struct {
	Name  string
	Title string // of its line in the summary
	First bool   // its line is the first one
	// Listeners are the addresses that it opens.
	Listeners []Listener
	// Prepare, if set, is called as soon as the admin addresses of all services are known: before the services start, or
	// when they listen, if one of them takes a free port. undo is called when the stack stops.
	Prepare func(at Addresses) (undo func() error, err error)
	// Run runs the program until ctx ends. It calls ready once, with the link for the summary.
	Run func(ctx context.Context, at Addresses, log *slog.Logger, ready func(link string)) error
}

// Listener is an address that the stack opens.
type Listener struct {
	Name     string // for people
	Flag     string // changes the address
	Addr     string
	Loopback bool // no other machine may reach it
}

// Listen are the addresses of one service, host:port each.
type Listen struct {
	API   string // for those that have one
	Admin string
}

// Addresses says where the parts of a running stack are.
type Addresses struct {
	Dir           string                        // of all state, absolute
	Names         []string                      // of the services that run, in the order of every output
	Services      map[string]Listen             // by the service's name
	Programs      map[string]string             // links, by the program's name; set when the stack is ready
	Mailbox, SMTP string                        // host:port
	KafkaBrokers  string                        // host:port, separated by commas
	Databases     map[string]string             // URLs for the superuser, by the service's name
	AdminToken    config.Secret                 // of all services' operations, another one at each start
	Instances     map[string]*eventing.Instance // the services with their settings, by name
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

// withFlags are the services whose addresses have flags of their own; those of others are set by their names.
var withFlags = []string{"customer", "notification"}

func (c Config) listeners() []Listener {
	var all []Listener
	for _, s := range c.services() {
		listen := c.Services[s.Name]
		api, admin := s.Name+"-addr", s.Name+"-admin-addr"
		if !slices.Contains(withFlags, s.Name) {
			api, admin = "service-addr="+s.Name, "service-admin-addr="+s.Name
		}
		if listen.API != "" {
			all = append(all, Listener{title(s.Name) + " API", api, listen.API, false})
		}
		all = append(all, Listener{title(s.Name) + " admin", admin, listen.Admin, false})
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

// all are the services that may run.
func (c Config) all() []eventing.Described {
	return append(services.All(), c.Extra...)
}

// hasFixedAdmins reports whether no service takes a free port for its admin listener.
func (c Config) hasFixedAdmins() bool {
	for _, listen := range c.Services {
		if strings.HasSuffix(listen.Admin, ":0") {
			return false
		}
	}
	return true
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
