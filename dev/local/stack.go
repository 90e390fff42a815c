package local

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/migrations"
)

type stack struct {
	cfg      Config
	settings map[string]string
	secret   string
	folder   *folder
	logs     *logs
	group    *service.Group
	faults   *Faults
	at       Addresses
	awaited  atomic.Value // what the start waits for
}

func newStack(ctx context.Context, cfg Config, f *folder, logs *logs, log *slog.Logger) (h *stack, err error) {
	h = &stack{
		cfg: cfg, folder: f, logs: logs, group: service.NewGroup(ctx, log, drainTimeout),
		faults: cmp.Or(cfg.Faults, &Faults{}),
		at: Addresses{
			Dir: f.path, KafkaBrokers: cfg.KafkaBrokers, AdminToken: config.Secret(newSecret()),
			Services: map[string]Listen{}, Databases: map[string]string{}, Programs: map[string]string{},
		},
	}
	h.faults.stack, h.faults.parts = h, map[string]*breakable{}
	for _, s := range cfg.services() {
		h.at.Names = append(h.at.Names, s.Name)
	}
	h.settings, _ = readSettings(cfg) // checkSettings reported the problems
	h.secret, err = f.secret()
	return h, err
}

// start stops early when a part ends: the group has the reason.
func (h *stack) start() (err error) {
	ctx, end := context.WithCancel(h.group.Context())
	defer end()
	go h.showProgress(ctx)
	h.awaited.Store("PostgreSQL, Kafka and the mailbox")
	if err := h.startParts(ctx); err != nil {
		return err
	}
	h.awaited.Store("tables and topics")
	if err := h.prepare(ctx); err != nil {
		return err
	}
	if h.cfg.Faults != nil {
		if err := h.pickPorts(ctx); err != nil {
			return err
		}
	}
	h.awaited.Store("the services")
	for _, s := range h.cfg.services() {
		if h.cfg.Faults != nil {
			err = h.startProcess(s)
		} else {
			err = h.startService(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range h.cfg.Programs {
		if err := h.startProgram(ctx, p); err != nil {
			return err
		}
	}
	return h.awaitReady(ctx)
}

const progressEvery = 5 * time.Second

func (h *stack) showProgress(ctx context.Context) {
	for began := time.Now(); failure.Sleep(ctx, progressEvery) == nil; {
		seconds := int(time.Since(began).Seconds())
		_, _ = fmt.Fprintf(h.logs.screen, "Still waiting after %d s for %s\n", seconds, h.awaited.Load())
	}
}

// prepare does the work of the services' migrate and topics commands.
func (h *stack) prepare(ctx context.Context) error {
	instances, err := h.configure()
	if err != nil {
		return err
	}
	h.at.Instances = instances
	group, ctx := errgroup.WithContext(ctx)
	var topics []kafka.Topic
	var client kafka.Config
	for _, s := range h.cfg.services() {
		group.Go(func() error {
			_, err := migrations.Apply(ctx, h.at.Databases[s.Name], s.Migrations...)
			return err
		})
		topics = append(topics, instances[s.Name].Topics()...)
		client = instances[s.Name].Client("twinbox")
	}
	group.Go(func() error { return kafka.EnsureTopics(ctx, client, topics...) })
	return group.Wait()
}

// Mails link to the API, so its address is known before later services are configured.
func (h *stack) startService(ctx context.Context, s eventing.Described) error {
	instance, err := s.Load(h.environ(s))
	if err != nil {
		return fmt.Errorf("configure %s: %w", s.Name, err)
	}
	log, err := h.logs.loggerOf(s.Name, instance.Value("LOG_LEVEL"), instance.Value("LOG_FORMAT"))
	if err != nil {
		return err
	}
	listening := make(chan service.Listeners, 1)
	h.group.Go(s.Name, func(ctx context.Context) error {
		return instance.Run(ctx, service.Host{Log: log, Ready: func(at service.Listeners) { listening <- at }})
	})
	at, err := await(ctx, listening)
	if err == nil {
		h.at.Services[s.Name] = Listen(at)
	}
	return err
}

func (h *stack) startProgram(ctx context.Context, p Program) error {
	log, err := h.logs.logger(p.Name)
	if err != nil {
		return err
	}
	at, ready := h.at, make(chan string, 1)
	h.group.Go(p.Name, func(ctx context.Context) error {
		return p.Run(ctx, at, log, func(link string) { ready <- link })
	})
	h.at.Programs[p.Name], err = await(ctx, ready)
	return err
}

func await[T any](ctx context.Context, ready <-chan T) (value T, err error) {
	select {
	case value = <-ready:
		return value, nil
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

const readyPoll = 20 * time.Millisecond

// awaitReady has no limit: a service may wait for its operator.
func (h *stack) awaitReady(ctx context.Context) error {
	for {
		var waiting []string
		for _, name := range h.at.Names {
			var report bytes.Buffer
			if err := service.Healthcheck(ctx, h.at.Services[name].Admin, &report); err != nil {
				waiting = append(waiting, name+": "+cmp.Or(failedChecks(report.String()), err.Error()))
			}
		}
		if len(waiting) == 0 {
			return nil
		}
		reason := strings.Join(waiting, "; ")
		h.awaited.Store(reason)
		if err := failure.Sleep(ctx, readyPoll); err != nil {
			return fmt.Errorf("await readiness of %s: %w", reason, err)
		}
	}
}

func failedChecks(report string) string {
	var failed []string
	for line := range strings.Lines(report) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, " ") && len(fields) > 1 && fields[0] != service.StatusOK {
			failed = append(failed, strings.Join(fields[1:], " "))
		}
	}
	return strings.Join(failed, ", ")
}
