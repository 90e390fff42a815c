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
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/migrations"
)

type stage struct {
	dir      string
	server   *postgres.Server
	inMemory bool // without --brokers
	kafka    kafka.Config
	admin    *pgx.Conn
	made     int // databases so far, for their names
}

const stopTimeout = 30 * time.Second

func (s *stage) withServers(ctx context.Context, o options, notes io.Writer, do func() error) (err error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	if s.dir, err = os.MkdirTemp(o.Dir, "bench-"); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := os.Chmod(s.dir, 0o755); err != nil { // the server of root may run as another user
		return fmt.Errorf("open folder: %w", err)
	}
	if s.server, err = postgres.Start(ctx, postgres.Config{
		Dir: filepath.Join(s.dir, "postgres"), Durable: !o.NoSync, Progress: notes,
		Settings: map[string]string{"wal_level": "replica"}, // the server's default; the package's own is "logical"
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.server.Close()) }()
	if s.admin, err = pgx.Connect(ctx, s.server.DSN("postgres")); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = s.admin.Close(context.WithoutCancel(ctx)) }()
	if s.inMemory = len(o.Brokers) == 0; !s.inMemory {
		s.kafka.Brokers = o.Brokers
		return do()
	}
	return withBroker(ctx, func(kafka kafka.Config) error {
		s.kafka = kafka
		return do()
	})
}

func withBroker(ctx context.Context, do func(kafka.Config) error) error {
	b, err := broker.Start(ctx, broker.Config{})
	if err != nil {
		return err
	}
	return errors.Join(do(kafka.Config{Brokers: []string{b.Addr()}}), b.Close())
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

const maxConns = "&pool_max_conns=40"

// A new copy keeps a measurement from inheriting dead rows.
func (s *stage) withCopy(ctx context.Context, of string, do func(*database) error) (err error) {
	s.made++
	d := &database{name: fmt.Sprintf("bench_%d", s.made)}
	d.dsn = s.server.DSN(d.name)
	if _, err := s.admin.Exec(ctx, "create database "+d.name+" template "+of); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if d.Pool, err = pgxpool.New(ctx, d.dsn+maxConns); err != nil {
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
