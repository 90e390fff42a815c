package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/internal/failure"
)

type part interface {
	Done() <-chan struct{}
	Err() error
	Kill() error
	Close() error
}

type breakable struct {
	again func(context.Context) (part, error)

	mu      sync.Mutex // held while it is away
	running part
}

// run ends the stack with the part: services that wait for it for ever would look alive.
func (b *breakable) run(ctx context.Context) error {
	for {
		running := b.now()
		select {
		case <-running.Done():
			if b.now() == running {
				_ = running.Close()
				return errors.Join(errors.New("ended by itself"), running.Err())
			}
		case <-ctx.Done():
			return b.now().Close()
		}
	}
}

func (b *breakable) now() part {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running
}

func (b *breakable) interrupt(ctx context.Context, pause time.Duration) (began time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.running.Kill(); err != nil {
		return began, err
	}
	_ = failure.Sleep(ctx, pause) // the services stop more easily with it, so it always starts again
	began = time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), faultTimeout)
	defer cancel()
	for pauses := (failure.Backoff{Min: 10 * time.Millisecond, Max: time.Second}); ; {
		running, err := b.again(ctx)
		if err == nil {
			b.running = running
			return began, nil
		}
		if failure.Sleep(ctx, pauses.Next()) != nil { // its address may be taken for a moment
			return began, err
		}
	}
}

// The group stops these parts last, PostgreSQL as the very last.
func (h *stack) startParts(ctx context.Context) error {
	if err := h.startPostgres(ctx); err != nil {
		return err
	}
	if h.cfg.KafkaBrokers == "" {
		if err := h.startBroker(ctx); err != nil {
			return err
		}
	}
	mails, err := mailbox.Start(ctx, mailbox.Config{SMTPAddr: h.cfg.SMTP, HTTPAddr: h.cfg.Mailbox})
	if err != nil {
		return err
	}
	h.at.SMTP, h.at.Mailbox = mails.SMTPAddr(), mails.HTTPAddr()
	h.group.OnStop("mailbox", mails.Close)
	return nil
}

// startPostgres keeps the log off the screen: a stopping program causes a line per connection.
func (h *stack) startPostgres(ctx context.Context) error {
	log, err := h.logs.open("postgres")
	if err != nil {
		return err
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Dir: h.folder.file("postgres"), Progress: h.logs.screen, Durable: true, Log: log,
		Settings: map[string]string{"max_connections": "200"},
	})
	if info, stat := log.Stat(); err != nil && stat == nil && info.Size() > 0 {
		err = fmt.Errorf("%w (more in %s)", err, log.Name())
	}
	if err != nil {
		return err
	}
	for _, s := range h.cfg.services() {
		h.at.Databases[s.Name] = server.DSN(s.Name)
	}
	h.runPart(PartPostgres, server, func(ctx context.Context) (part, error) { return server.Restart(ctx) })
	return createDatabases(ctx, server, h.cfg)
}

const duplicateDatabase = "42P04"

func createDatabases(ctx context.Context, server *postgres.Server, cfg Config) error {
	conn, err := pgx.Connect(ctx, server.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("create databases: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, s := range cfg.services() {
		// A copy of the template's files takes a tenth of the time of the log.
		_, err := conn.Exec(ctx,
			"create database "+pgx.Identifier{s.Name}.Sanitize()+" template template0 strategy file_copy")
		if refused, is := errors.AsType[*pgconn.PgError](err); err != nil && (!is || refused.Code != duplicateDatabase) {
			return fmt.Errorf("create database %s: %w", s.Name, err)
		}
	}
	return nil
}

func (h *stack) startBroker(ctx context.Context) error {
	log, err := h.logs.logger("broker")
	if err != nil {
		return err
	}
	cfg := broker.Config{Addr: h.cfg.Kafka, Dir: h.folder.file("kafka"), Log: log}
	server, err := broker.Start(ctx, cfg)
	if err != nil {
		return err
	}
	h.at.KafkaBrokers, cfg.Addr = server.Addr(), server.Addr()
	h.runPart(PartKafka, server, func(ctx context.Context) (part, error) { return broker.Start(ctx, cfg) })
	return nil
}

func (h *stack) runPart(name string, running part, again func(context.Context) (part, error)) {
	b := &breakable{running: running, again: again}
	h.faults.parts[name] = b
	h.group.Go(name, b.run)
}
