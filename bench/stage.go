package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/dev/local/postgres"
	"example.com/twinbox/migrations"
)

// settings differ from the server's defaults.
var settings = map[string]string{
	"wal_level": "replica", // the default; the package's own is "logical"
}

type stage struct {
	dir     string
	server  *postgres.Server
	broker  *broker.Broker // nil with --brokers
	brokers []string
	admin   *pgx.Conn
	kafka   *kafkaAdmin
	made    int // databases so far, for their names
}

const stopTimeout = 30 * time.Second

// The caller must call close.
func openStage(ctx context.Context, o options, notes io.Writer) (s *stage, err error) {
	s = &stage{brokers: o.Brokers}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return s, fmt.Errorf("create folder: %w", err)
	}
	if s.dir, err = os.MkdirTemp(o.Dir, "bench-"); err != nil {
		return s, fmt.Errorf("create folder: %w", err)
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { // the server of root may run as another user
		return s, fmt.Errorf("open folder: %w", err)
	}
	if s.server, err = postgres.Start(ctx, postgres.Config{
		Dir: filepath.Join(s.dir, "postgres"), BinDir: o.PGBin, Durable: !o.NoSync, Settings: settings, Progress: notes,
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
	s.kafka, err = newKafkaAdmin(s.brokers)
	return s, err
}

func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var problems []error
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

func (s *stage) migrate(ctx context.Context, name string, sets ...migrations.Set) error {
	if _, err := s.admin.Exec(ctx, "create database "+name); err != nil {
		return fmt.Errorf("create template: %w", err)
	}
	_, err := migrations.Apply(ctx, s.server.DSN(name), sets...)
	return err
}

type database struct {
	*pgxpool.Pool
	name string
	dsn  string
}

// The default of DATABASE_MAX_CONNECTIONS.
const maxConns = 40

// A new copy keeps a measurement from inheriting dead rows.
func (s *stage) withCopy(ctx context.Context, of string, do func(*database) error) (err error) {
	s.made++
	d := &database{name: fmt.Sprintf("bench_%d", s.made)}
	d.dsn = s.server.DSN(d.name)
	if _, err := s.admin.Exec(ctx, "create database "+d.name+" template "+of); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	cfg, err := pgxpool.ParseConfig(d.dsn)
	if err != nil {
		return fmt.Errorf("read DSN: %w", err)
	}
	cfg.MaxConns = maxConns
	if d.Pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		d.Close()
		_, dropErr := s.admin.Exec(context.WithoutCancel(ctx), "drop database "+d.name+" with (force)")
		err = errors.Join(err, dropErr)
	}()
	return do(d)
}

// The checkpoint writes the dirty pages of earlier steps.
func (s *stage) settle(ctx context.Context) error {
	runtime.GC()
	if _, err := s.admin.Exec(ctx, "checkpoint"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
