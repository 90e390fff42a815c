package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/migrations"
)

// stack is a stack on its way up.
type stack struct {
	cfg    Config
	folder *folder
	logs   *logs
	group  *service.Group
	at     Addresses

	ended     chan struct{} // closed when the first part ends
	endedOnce sync.Once
}

func newStack(ctx context.Context, cfg Config, f *folder, logs *logs, log *slog.Logger) *stack {
	return &stack{
		cfg: cfg, folder: f, logs: logs, group: service.NewGroup(ctx, log, drainTimeout), ended: make(chan struct{}),
	}
}

// errPartEnded says that a part ended while the others started. Why is the group's to say.
var errPartEnded = errors.New("a part ended while the stack started")

// run runs a part in the group. The group watches it only once everything is up; until then ended does.
func (h *stack) run(name string, part func(ctx context.Context) error) {
	h.group.Go(name, func(ctx context.Context) error {
		defer h.endedOnce.Do(func() { close(h.ended) })
		return part(ctx)
	})
}

// start brings everything up, as much as can be at the same time.
func (h *stack) start(ctx context.Context) error {
	secret, err := h.folder.secret()
	if err != nil {
		return err
	}
	parts, err := startParts(ctx, h.cfg, h.folder, h.logs)
	parts.register(h)
	if err != nil {
		return err
	}
	if h.cfg.Faults != nil {
		h.cfg.Faults.stack, h.cfg.Faults.processes = h, map[string]*process{}
		if h.cfg.Services, err = fix(ctx, h.cfg.Services); err != nil {
			return err
		}
	}
	h.at = parts.addresses(h.cfg)
	h.at.Dir, h.at.AdminToken = h.folder.path, newToken()
	h.at.Services = map[string]Listen{services.Names()[0]: {API: placeholderAPI}}
	instances, err := configure(h.cfg, h.at, secret)
	if err != nil {
		return err
	}
	if err := h.prepare(ctx, instances); err != nil {
		return err
	}
	h.at.Instances = instances
	if h.cfg.hasFixedAdmins() {
		if err := h.preparePrograms(h.cfg.Services); err != nil {
			return err
		}
	}

	// Mails link to the API, so its port is known before the services behind it start.
	for _, s := range h.cfg.services() {
		if instances, err = configure(h.cfg, h.at, secret); err != nil {
			return err
		}
		if h.cfg.Faults != nil {
			err = h.runProcess(s, secret)
		} else {
			err = h.runInstance(ctx, s.Name, instances[s.Name])
		}
		if err != nil {
			return err
		}
	}
	if !h.cfg.hasFixedAdmins() {
		if err := h.preparePrograms(h.at.Services); err != nil {
			return err
		}
	}
	if err := h.awaitReady(ctx); err != nil {
		return err
	}
	return h.runPrograms(ctx)
}

// preparePrograms hands the services' addresses to the programs that wait for nothing else.
func (h *stack) preparePrograms(services map[string]Listen) error {
	at := h.at
	at.Services = services
	for _, p := range h.cfg.Programs {
		if p.Prepare == nil {
			continue
		}
		undo, err := p.Prepare(at)
		if err != nil {
			return fmt.Errorf("prepare %s: %w", p.Name, err)
		}
		h.group.OnStop(p.Name+" files", undo)
	}
	return nil
}

// runPrograms starts one program after the other.
func (h *stack) runPrograms(ctx context.Context) error {
	links := map[string]string{}
	for _, p := range h.cfg.Programs {
		log, err := h.logs.logger(h.folder, p.Name)
		if err != nil {
			return err
		}
		at, ready := h.at, make(chan string, 1)
		h.run(p.Name, func(ctx context.Context) error {
			return p.Run(ctx, at, log, func(link string) { ready <- link })
		})
		if links[p.Name], err = await(ctx, h, ready); err != nil {
			return err
		}
	}
	h.at.Programs = links
	return nil
}

// prepare does what the services' migrate and topics commands do. Topics of services that do not run are made as well:
// others may read them.
func (h *stack) prepare(ctx context.Context, instances map[string]*eventing.Instance) error {
	group, ctx := errgroup.WithContext(ctx)
	var topics []kafka.Topic
	var client kafka.Config
	for _, s := range h.cfg.all() {
		instance, runs := instances[s.Name]
		if !runs {
			topics = append(topics, s.Unset().Topics()...)
			continue
		}
		group.Go(func() error {
			_, err := migrations.Apply(ctx, h.at.Databases[s.Name], s.Migrations...)
			return err
		})
		topics = append(topics, instance.Topics()...)
		client = instance.Client("twinbox")
	}
	group.Go(func() error { return kafka.EnsureTopics(ctx, client, topics...) })
	return group.Wait()
}

// runProcess starts a service in a process of its own. Where it will listen is known.
func (h *stack) runProcess(s eventing.Described, secret string) error {
	log, err := h.logs.open(h.folder, s.Name+".log")
	if err != nil {
		return err
	}
	own := environment(s.Name, h.cfg, h.at, secret)
	settings, err := readSettings(h.cfg, own)
	if err != nil {
		return err
	}
	p := &process{
		name: s.Name, program: h.cfg.Faults.Program, environ: entries(s, settings, own), log: log,
		kills: make(chan chan struct{}),
	}
	h.cfg.Faults.processes[s.Name], h.at.Services[s.Name] = p, h.cfg.Services[s.Name]
	h.run(s.Name, p.run)
	return nil
}

// runInstance runs a service that logs as its settings say, and returns when it listens.
func (h *stack) runInstance(ctx context.Context, name string, instance *eventing.Instance) error {
	log, err := h.logs.loggerOf(h.folder, name, instance.Value("LOG_LEVEL"), instance.Value("LOG_FORMAT"))
	if err != nil {
		return err
	}
	listening := make(chan service.Listening, 1)
	h.run(name, func(ctx context.Context) error {
		return instance.Run(ctx, service.Host{Log: log, Ready: func(at service.Listening) { listening <- at }})
	})
	at, err := await(ctx, h, listening)
	if err == nil {
		h.at.Services[name] = Listen{API: at.API, Admin: at.Admin}
	}
	return err
}

// await returns the value with which a part reports that it is ready.
func await[T any](ctx context.Context, h *stack, ready <-chan T) (value T, err error) {
	select {
	case value = <-ready:
		return value, nil
	case <-h.ended:
		return value, errPartEnded
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
