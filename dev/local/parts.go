package local

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/dev/local/postgres"
)

// parts are what the services need and would find elsewhere in production.
type parts struct {
	postgres *postgres.Server
	broker   *broker.Broker // nil when Kafka runs elsewhere
	mailbox  *mailbox.Mailbox

	brokerConfig broker.Config
}

// startParts starts all of them at once. Beside an error it returns those that did start: they must be stopped.
func startParts(ctx context.Context, cfg Config, f *folder, logs *logs) (*parts, error) {
	p := &parts{}
	brokerLog, err := logs.logger(f, "broker")
	if err != nil {
		return p, err
	}
	mailLog, err := logs.logger(f, "mailbox")
	if err != nil {
		return p, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.startPostgres(ctx, cfg, f, logs) })
	if cfg.KafkaBrokers == "" {
		group.Go(func() (err error) {
			p.brokerConfig = broker.Config{Addr: cfg.Kafka, Dir: f.file("kafka"), Log: brokerLog}
			p.broker, err = broker.Start(ctx, p.brokerConfig)
			return err
		})
	}
	group.Go(func() (err error) {
		p.mailbox, err = mailbox.Start(ctx, mailbox.Config{
			SMTPAddr: cfg.SMTP, HTTPAddr: cfg.Mailbox, Dir: f.file("mails"), Log: mailLog,
		})
		return err
	})
	return p, group.Wait()
}

// startPostgres starts the server with what its log says in a file: it speaks of every connection that a stopping
// program cuts.
func (p *parts) startPostgres(ctx context.Context, cfg Config, f *folder, logs *logs) error {
	log, err := logs.open(f, "postgres.log")
	if err != nil {
		return err
	}
	before := size(log)
	p.postgres, err = postgres.Start(ctx, postgres.Config{
		Dir: f.file("postgres"), BinDir: cfg.PGBin, SkipInstalled: cfg.FetchPostgres, Progress: cfg.Err,
		Durable: true, Log: log, Settings: map[string]string{"max_connections": "200"},
	})
	if err != nil && size(log) > before {
		return fmt.Errorf("%w (more in %s)", err, log.Name())
	}
	if err != nil {
		return err
	}
	for _, s := range cfg.services() {
		if err := createDatabase(ctx, p.postgres, s.Name); err != nil {
			return err
		}
	}
	return nil
}

// size is what a log holds. One that cannot be asked has nothing to point at.
func size(log *os.File) int64 {
	info, err := log.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

const databaseExistsSQL = `select exists (select from pg_database where datname = $1)`

func createDatabase(ctx context.Context, server *postgres.Server, name string) error {
	conn, err := pgx.Connect(ctx, server.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := conn.QueryRow(ctx, databaseExistsSQL, name).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	// Copying the template's files takes a tenth of the time that writing them through the log does.
	statement := "create database " + pgx.Identifier{name}.Sanitize() + " template template0 strategy file_copy"
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// register hands the parts to the stack, which stops them last, PostgreSQL as the very last.
func (p *parts) register(h *stack) {
	faults := h.cfg.Faults
	if faults == nil {
		faults = &Faults{}
	}
	if p.postgres != nil {
		faults.postgres = &breakable{
			name: "PostgreSQL", running: postgresPart{p.postgres},
			kill: func(running part) error { return running.(postgresPart).Kill() },
			again: func(ctx context.Context) (part, error) {
				again, err := p.postgres.Restart(ctx)
				return postgresPart{again}, err
			},
		}
		h.run("postgresql", faults.postgres.run)
	}
	if p.broker != nil {
		cfg := p.brokerConfig
		cfg.Addr = p.broker.Addr()
		faults.broker = &breakable{
			name: "Kafka", running: p.broker, kill: part.Close,
			again: func(ctx context.Context) (part, error) { return broker.Start(ctx, cfg) },
		}
		h.run("broker", faults.broker.run)
	}
	if p.mailbox != nil {
		box := &breakable{name: "mailbox", running: p.mailbox}
		h.run("mailbox", box.run)
	}
}

// part is a server that may end by itself.
type part interface {
	Done() <-chan struct{}
	Err() error
	Close() error
}

// stopTimeout is for the checkpoint that ends the server. After a first start that is an fsync of 400 files, for which
// a slow or busy disk takes more than 10 s.
const stopTimeout = 25 * time.Second

type postgresPart struct{ *postgres.Server }

// Close stops the server in good order.
func (s postgresPart) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return s.Stop(ctx)
}

// addresses says where the parts are; those of the services are not known yet.
func (p *parts) addresses(cfg Config) Addresses {
	at := Addresses{
		KafkaBrokers: cfg.KafkaBrokers, SMTP: p.mailbox.SMTPAddr(), Mailbox: p.mailbox.HTTPAddr(),
		Databases: map[string]string{},
	}
	for _, s := range cfg.services() {
		at.Names = append(at.Names, s.Name)
		at.Databases[s.Name] = p.postgres.DSN(s.Name)
	}
	if p.broker != nil {
		at.KafkaBrokers = p.broker.Addr()
	}
	return at
}
