package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/migrations"
)

// stageConfig says what a benchmark runs on.
type stageConfig struct {
	Dir     string    // parent of the database's folder
	PGBin   string    // "": found or fetched
	Durable bool      // fsync on
	Brokers []string  // none: a broker in this process
	Notes   io.Writer // where a fetch of PostgreSQL tells of its progress
}

// settings are what differs from the server's own defaults. Durability is left as it is in production.
var settings = map[string]string{
	"wal_level": "replica", // the default; the package's own is "logical"
}

// stage is the database server and the broker of one run.
type stage struct {
	dir     string
	server  *postgres.Server
	broker  *broker.Broker // nil when brokers were given
	brokers []string
	admin   *pgx.Conn
	kafka   *kafkaAdmin
	keep    bool // leave databases to the end, for runs so small that dropping would take longer
	made    int  // databases so far, for their names
	closers []func() error
}

const stopTimeout = 30 * time.Second

// openStage starts everything. Close must be called, also after an error: then with what did start.
func openStage(ctx context.Context, cfg stageConfig) (s *stage, err error) {
	s = &stage{brokers: cfg.Brokers}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return s, fmt.Errorf("create folder: %w", err)
	}
	if s.dir, err = os.MkdirTemp(cfg.Dir, "bench-"); err != nil {
		return s, fmt.Errorf("create folder: %w", err)
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { // the server of root may run as another user
		return s, fmt.Errorf("open folder: %w", err)
	}
	if s.server, err = postgres.Start(ctx, postgres.Config{
		Dir: filepath.Join(s.dir, "postgres"), BinDir: cfg.PGBin, Durable: cfg.Durable, Settings: settings,
		Progress: cfg.Notes,
	}); err != nil {
		return s, err
	}
	if s.admin, err = pgx.Connect(ctx, s.server.DSN("postgres")); err != nil {
		return s, fmt.Errorf("connect: %w", err)
	}
	if len(s.brokers) == 0 {
		if s.broker, err = broker.Start(ctx, broker.Config{}); err != nil {
			return s, err
		}
		s.brokers = []string{s.broker.Addr()}
	}
	if s.kafka, err = newKafkaAdmin(s.brokers); err != nil {
		return s, err
	}
	return s, s.buildTemplate(ctx)
}

// close stops everything and removes the files.
func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var problems []error
	for _, closeIt := range slices.Backward(s.closers) {
		problems = append(problems, closeIt())
	}
	if s.kafka != nil {
		problems = append(problems, s.kafka.close())
	}
	if s.broker != nil {
		problems = append(problems, s.broker.Close())
	}
	if s.admin != nil {
		_ = s.admin.Close(ctx)
	}
	if s.server != nil {
		problems = append(problems, s.server.Stop(ctx))
	}
	if s.dir != "" {
		problems = append(problems, os.RemoveAll(s.dir))
	}
	return errors.Join(problems...)
}

// template names a database that others are copies of.
const template = "bench_template"

// buildTemplate makes the one of most measurements: the tables of the Customer service without an inbox.
func (s *stage) buildTemplate(ctx context.Context) error {
	return s.migrate(ctx, template, migrations.Outbox, migrations.Customer)
}

// migrate makes a database with the tables of the sets.
func (s *stage) migrate(ctx context.Context, name string, sets ...migrations.Set) error {
	if _, err := s.admin.Exec(ctx, "create database "+name); err != nil {
		return fmt.Errorf("create template: %w", err)
	}
	_, err := migrations.Apply(ctx, s.server.DSN(name), sets...)
	return err
}

// database is one migrated database with a pool on it.
type database struct {
	*pgxpool.Pool
	name string
	dsn  string
}

// maxConns is the largest number of clients, and one for the measuring queries.
const maxConns = 33

// newDatabase makes an empty one, so that no measurement inherits another's dead rows.
func (s *stage) newDatabase(ctx context.Context) (*database, error) { return s.copyOf(ctx, template) }

// copyOf makes a database that is a copy of the one named.
func (s *stage) copyOf(ctx context.Context, template string) (*database, error) {
	s.made++
	name := fmt.Sprintf("bench_%d", s.made)
	if _, err := s.admin.Exec(ctx, "create database "+name+" template "+template); err != nil {
		return nil, fmt.Errorf("create database: %w", err)
	}
	return s.open(ctx, name)
}

// open makes a pool on a database that is there.
func (s *stage) open(ctx context.Context, name string) (*database, error) {
	d := &database{name: name, dsn: s.server.DSN(name)}
	cfg, err := pgxpool.ParseConfig(d.dsn)
	if err != nil {
		return nil, fmt.Errorf("read DSN: %w", err)
	}
	cfg.MaxConns = maxConns
	if d.Pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s.closers = append(s.closers, func() error {
		d.Close()
		return nil
	})
	return d, nil
}

// drop closes the pool and drops the database: what a round leaves on the disk would slow down the next.
func (s *stage) drop(ctx context.Context, d *database) error {
	d.Close()
	if s.keep {
		return nil
	}
	if _, err := s.admin.Exec(ctx, "drop database if exists "+d.name+" with (force)"); err != nil {
		return fmt.Errorf("drop database: %w", err)
	}
	return nil
}

// checkpoint writes out what earlier steps left dirty, so that it is not written during the next measurement.
func (s *stage) checkpoint(ctx context.Context) error {
	if _, err := s.admin.Exec(ctx, "checkpoint"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// settle brings the machine to the same state before each timed part.
func (s *stage) settle(ctx context.Context) error {
	runtime.GC()
	return s.checkpoint(ctx)
}

const walSQL = `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`

// walBytes is how much write-ahead log the server has ever written.
func (s *stage) walBytes(ctx context.Context) (int64, error) {
	var bytes int64
	if err := s.admin.QueryRow(ctx, walSQL).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("read WAL position: %w", err)
	}
	return bytes, nil
}

// withDatabase makes a database with a variant in it, runs do and takes both away.
func (s *stage) withDatabase(
	ctx context.Context, open func(*database) (variant, error), do func(*database, variant) error,
) (err error) {
	db, err := s.newDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.drop(context.WithoutCancel(ctx), db)) }()
	v, err := open(db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	return do(db, v)
}

// connect makes a publisher and sends one message, so that connecting is not measured.
func (s *stage) connect(make func([]string) (message.Publisher, error)) (message.Publisher, error) {
	p, err := make(s.brokers)
	if err != nil {
		return nil, fmt.Errorf("make publisher: %w", err)
	}
	if err := p.Publish(warmTopic, corpus{topic: warmTopic}.message(0)); err != nil {
		return nil, errors.Join(fmt.Errorf("publish first message: %w", err), p.Close())
	}
	return p, nil
}
