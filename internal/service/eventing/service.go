package eventing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/migrations"
)

// Service declares a service. API, Operations and Checks are optional.
type Service[C Settings] struct {
	Name       string
	Source     string
	Contract   func() (*event.Checker, error)
	API        []byte                        // the OpenAPI document, as JSON
	Migrations []migrations.Set              // in the order of application
	Operations func(node *Node, cfg C) error // runs after SetUp, and adds their API to node.Admin
	Checks     func(cfg C) []Check           // of its own tables

	// SetUp adds consumers, tasks and the API. It connects to nothing: the topics command calls it too.
	SetUp func(node *Node, cfg C) error
}

// Check is a query for events without their effect. A row has the event's id, its key, a version and a sentence. The
// first three may be empty or 0.
type Check struct {
	Name, SQL string
	Args      []any // text, numbers and booleans
}

// Settings is a service's configuration. An embedded [Config] has most of its methods.
type Settings interface {
	Shared() Config
	Listeners() service.Listeners
	Topics() []kafka.Topic
	Client(service string) kafka.Config
	Rules() []config.Rule
}

func (c Config) Shared() Config { return c }

// Run runs the service until ctx ends and it has drained.
func (s Service[C]) Run(ctx context.Context, cfg C, host service.Host) error {
	group := service.NewGroup(ctx, host.Log, cfg.Shared().DrainFor)
	node, err := s.open(ctx, cfg, host.Log, group.Context().Done())
	if err != nil {
		return err
	}
	return node.Run(group, cfg.Listeners(), host)
}

func (s Service[C]) open(
	ctx context.Context, cfg C, log *slog.Logger, draining <-chan struct{},
) (node *Node, err error) {
	contract, err := s.Contract()
	if err != nil {
		return nil, fmt.Errorf("load contract: %w", err)
	}
	shared := cfg.Shared()
	admin := service.NewAdmin(service.AdminConfig{
		Log: log, Draining: draining, Hosts: shared.adminNames(cfg.Listeners().Admin),
	})
	if s.API != nil {
		admin.Document(s.API)
	}
	node, err = Open(ctx, Setup{
		Service: s.Name, Source: s.Source, Config: shared, Migrations: s.Migrations, Topics: cfg.Topics(),
		Validate: contract.Validate, Declared: contract.Declared(), Log: log, Admin: admin,
	})
	if err != nil {
		return nil, err
	}
	if err = s.SetUp(node, cfg); err == nil && s.Operations != nil {
		err = s.Operations(node, cfg)
	}
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return node, nil
}

type Declared struct {
	Service, Source string
	Consumers       []Consumer
	Events          []event.Declaration
	Topics          []kafka.Topic // with those for copies of dead letters
	Checks          []Check
}

func (s Service[C]) declared(ctx context.Context, cfg C) (found Declared, err error) {
	node, err := s.open(ctx, cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return found, fmt.Errorf("set up %s: %w", s.Name, err)
	}
	found.Service, found.Source, found.Topics, found.Events = s.Name, s.Source, node.topics, node.setup.Declared
	if s.Checks != nil {
		found.Checks = s.Checks(cfg)
	}
	for _, c := range node.consumers {
		found.Consumers = append(found.Consumers, c.Consumer)
	}
	return found, node.Close()
}

func (s Service[C]) setup(ctx context.Context, cfg C, out io.Writer) error {
	err := s.migrate(ctx, cfg, out)
	if err == nil {
		err = cfg.Shared().checkLogin(ctx)
	}
	if err == nil {
		err = s.ensureTopics(ctx, cfg, out)
	}
	return err
}

func (s Service[C]) migrate(ctx context.Context, cfg C, out io.Writer) error {
	return cfg.Shared().Migrate(ctx, out, s.Migrations...)
}

func (s Service[C]) ensureTopics(ctx context.Context, cfg C, out io.Writer) error {
	found, err := s.declared(ctx, cfg)
	if err != nil {
		return err
	}
	return cfg.Shared().EnsureTopics(ctx, out, s.Name, found.Topics)
}

func (s Service[C]) Main(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	program := service.Program[C]{
		Name: s.Name,
		Settings: func(cfg C) service.Settings {
			shared := cfg.Shared()
			return service.Settings{
				AdminAddr: cfg.Listeners().Admin, LogLevel: shared.LogLevel, LogFormat: shared.LogFormat,
			}
		},
		Serve: s.Run,
		Commands: []service.Command[C]{
			{Name: "setup", What: "migrate, topics, and a check that the database lets the service in", Run: s.setup},
			{Name: "migrate", What: "bring the database to the schema of this build", Run: s.migrate},
			{Name: "topics", What: "create the Kafka topics of this service", Run: s.ensureTopics},
		},
	}
	return program.Run(ctx, args, environ, stdout, stderr)
}

// Described leaves out the configuration's type.
type Described struct {
	Name       string
	Migrations []migrations.Set
	API        []byte // optional

	// Load returns what it could read, also with an error.
	Load func(environ []string) (*Instance, error)
}

func (s Service[C]) Describe() Described {
	return Described{Name: s.Name, Migrations: s.Migrations, API: s.API, Load: func(environ []string) (*Instance, error) {
		var cfg C
		err := config.Load(environ, &cfg)
		return &Instance{
			Settings: cfg, Variables: config.Describe(cfg),
			Declared: func(ctx context.Context) (Declared, error) { return s.declared(ctx, cfg) },
			Run:      func(ctx context.Context, host service.Host) error { return s.Run(ctx, cfg, host) },
		}, err
	}}
}

// Unset returns an instance with the defaults alone, which cannot run.
func (d Described) Unset() *Instance {
	instance, _ := d.Load(nil) // required settings are missing
	return instance
}

// Declare needs no configuration.
func (d Described) Declare(ctx context.Context) (Declared, error) {
	instance, _ := d.Load([]string{"DATABASE_URL=postgres://127.0.0.1:1/none", "KAFKA_BROKERS=127.0.0.1:1"})
	return instance.Declared(ctx)
}

type Instance struct {
	Settings

	// Variables have the values in effect.
	Variables []config.Setting
	// Declared needs no server.
	Declared func(ctx context.Context) (Declared, error)
	Run      func(ctx context.Context, host service.Host) error
}

func (i *Instance) Reads(variable string) bool { return i.variable(variable).Variable != "" }

// Value returns "" for an unknown variable.
func (i *Instance) Value(variable string) string { return i.variable(variable).Value }

func (i *Instance) variable(name string) config.Setting {
	at := slices.IndexFunc(i.Variables, func(v config.Setting) bool { return v.Variable == name })
	if at < 0 {
		return config.Setting{}
	}
	return i.Variables[at]
}
