package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/operations/demo"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/internal/verify"
)

type commands struct {
	Demo  DemoCommand  `cmd:"" help:"Run a system of its own, break it, and ask whether anything was lost."`
	Serve ServeCommand `cmd:"" hidden:""`
}

type DemoCommand struct {
	Rate   float64       `help:"Sign-ups a second." default:"20"`
	For    time.Duration `help:"How long people sign up." default:"25s"`
	Outage time.Duration `help:"How long Kafka, and PostgreSQL, are away." default:"2s"`
	Inject []string      `help:"What goes wrong: duplicates, poison, kill (each service, with kill -9), kafka, postgres (an outage each), all or none." enum:"all,none,duplicates,poison,kill,kafka,postgres" default:"all" placeholder:"NAME,..."`

	ByMake bool `help:"Stop when the program that started this one is gone." hidden:"" env:"-"`
}

func (DemoCommand) Help() string {
	return "Starts a system of its own in a temporary folder, each service a process, signs people up, breaks what it " +
		"is told to break, and ends with the verdict of all services: 0 when nothing is lost, doubled, altered, invented " +
		"or reordered, 1 when something is."
}

// demoSettings let a killed system come back soon, and a crowd come from one address.
var demoSettings = []string{
	"RATE_LIMIT=0", "SIGNUPS_PER_CLIENT=0", "OUTBOX_LEASE=10s", "KAFKA_PUBLISH_TIMEOUT=4s", "SMTP_TIMEOUT=3s",
	"MAIL_LEASE=10s", "MAIL_HEARTBEAT=2s", "MAIL_POLL=250ms", "INBOX_RETRY_MIN=100ms", "INBOX_RETRY_MAX=1s",
}

const maxRate = 1000

func (c *DemoCommand) Run(ctx context.Context, to *kong.Context) (err error) {
	if c.Rate <= 0 || c.Rate > maxRate || c.For < time.Second || c.Outage < 0 {
		return local.UsageError("--rate is above 0 and at most 1000, --for at least 1s, --outage not below 0")
	}
	if c.ByMake {
		var stop func()
		ctx, stop = local.WithParent(ctx)
		defer stop()
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "twinbox-demo-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // root's database runs as another account
	}
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	_, _ = fmt.Fprintln(to.Stderr, "Starting PostgreSQL, Kafka, a mailbox, and each service as a process of its own ...")
	err = c.run(ctx, to, local.Config{
		Dir: filepath.Join(dir, "state"), Settings: demoSettings,
		Faults: &local.Faults{Program: program}, Programs: []local.Program{Console("127.0.0.1:0")},
	})
	if err != nil {
		_, _ = fmt.Fprintln(to.Stderr, "devstack: what is left of it, logs and data, is in", dir)
		return err
	}
	return os.RemoveAll(dir)
}

// run keeps the system up after Ctrl-C: the demonstration still judges its events.
func (c *DemoCommand) run(ctx context.Context, to *kong.Context, cfg local.Config) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	stopsStart := context.AfterFunc(ctx, stop)
	played := errors.New("the demonstration has not begun")
	var playing sync.WaitGroup
	cfg.Err = to.Stderr
	cfg.Ready = func(at local.Addresses) {
		stopsStart()
		playing.Go(func() {
			defer stop()
			played = c.play(ctx, to, at, cfg.Faults)
		})
	}
	err := local.Run(running, cfg)
	playing.Wait()
	return errors.Join(err, played)
}

func (c *DemoCommand) play(ctx context.Context, to *kong.Context, at local.Addresses, faults *local.Faults) error {
	cfg := demo.Config{
		API: at.API(), Faults: c.faults(at, faults), Rate: c.Rate, For: c.For, Settle: time.Minute + c.Outage,
		Out: to.Stdout, Verify: func(ctx context.Context, since time.Time) (verify.Report, error) {
			system, err := systemOf(ctx, at)
			if err != nil {
				return nil, err
			}
			return system.Verify(ctx, func(s verify.Service) verify.Config {
				return verify.Config{Service: s, Kafka: kafka.Config{Brokers: system.Brokers}, Since: since}
			})
		},
	}
	for _, name := range services.Names() {
		s, err := client.New(name, at.Services[name].Admin, at.AdminToken.Reveal())
		if err != nil {
			return err
		}
		cfg.Services = append(cfg.Services, s)
	}
	_, _ = fmt.Fprintf(to.Stdout, "\n  Console  %s\n  Mailbox  http://%s\n\n", at.Programs[consoleName], at.Mailbox)
	return demo.Play(ctx, cfg)
}

func (c *DemoCommand) faults(at local.Addresses, cause *local.Faults) (faults []demo.Fault) {
	add := func(name string, added ...demo.Fault) {
		if slices.Contains(c.Inject, name) || slices.Contains(c.Inject, "all") {
			faults = append(faults, added...)
		}
	}
	away := func(name, what, part string, pause time.Duration) demo.Fault {
		return demo.Fault{Name: name, What: what, Cause: func(ctx context.Context, _ *demo.Run) (string, error) {
			after, err := cause.Interrupt(ctx, part, pause)
			return fmt.Sprintf("ready again after %.1f s", after.Seconds()), err
		}}
	}
	add("duplicates", demo.Duplicates())
	add("poison", demo.Poison(strings.Split(at.KafkaBrokers, ",")))
	for _, name := range services.Names() {
		add("kill", away("kill "+name, "kill -9 of its process; another one takes its place", name, 0))
	}
	add("kafka", away("no Kafka", fmt.Sprintf("the broker is away for %s; people sign up all the same", c.Outage),
		local.PartKafka, c.Outage))
	add("postgres", away("no PostgreSQL",
		fmt.Sprintf("kill -9 of the server, which is away for %s; people try again", c.Outage),
		local.PartPostgres, c.Outage))
	return faults
}

// ServeCommand is "devstack serve", a service of a demonstration.
type ServeCommand struct {
	Service string `arg:"" help:"Its name. Its settings are its variables, as of its own program."`
}

// Run runs the service until a signal or the end of its parent.
func (c *ServeCommand) Run(ctx context.Context, to *kong.Context) error {
	service.StartTracing()
	ctx, stop := local.WithParent(ctx)
	defer stop()
	for _, s := range services.All() {
		if s.Name != c.Service {
			continue
		}
		instance, err := s.Load(os.Environ())
		if err != nil {
			return err
		}
		log := service.NewLogger(to.Stderr, instance.Value("LOG_LEVEL"), instance.Value("LOG_FORMAT"))
		return instance.Run(ctx, service.Host{Log: log.With("service", s.Name)})
	}
	return local.UsageError("there is no service " + c.Service)
}
