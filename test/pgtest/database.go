package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/testkit"
)

// New returns a pool on an empty database with the sets' tables, dropped with the test unless the test failed. Parallel
// tests share transaction ids and snapshots' xmin, but no advisory locks.
func New(t testing.TB, sets ...migrations.Set) *pgxpool.Pool {
	t.Helper()
	c, err := shared.get()
	require.NoError(t, err, "no PostgreSQL for this test")
	pool, drop, err := c.create(t.Context(), sets)
	require.NoError(t, err)
	t.Cleanup(func() {
		pool.Close()
		if t.Failed() {
			c.keepDatabase(pool.Config().ConnConfig.Database)
			return
		}
		require.NoError(t, drop())
	})
	return pool
}

// Open is [New] for an Example. Call drop when done. It panics where New fails.
func Open(sets ...migrations.Set) (pool *pgxpool.Pool, drop func()) {
	c, err := shared.get()
	if err != nil {
		panic(err)
	}
	pool, dropDatabase, err := c.create(context.Background(), sets)
	if err != nil {
		panic(err)
	}
	return pool, func() {
		pool.Close()
		if err := dropDatabase(); err != nil {
			panic(err)
		}
	}
}

// Bounded returns a pool on the same database. A statement without a deadline fails the test: after its server has
// vanished it would hang for a quarter of an hour.
func Bounded(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	cfg := pool.Config()
	cfg.ConnConfig.Tracer = testkit.Tracer{Begin: func(ctx context.Context) context.Context {
		if _, isBounded := ctx.Deadline(); !isBounded {
			t.Errorf("a statement without a deadline:\n%s", debug.Stack())
		}
		return ctx
	}}
	bounded, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(bounded.Close)
	return bounded
}

func DSN(pool *pgxpool.Pool) string { return pool.Config().ConnString() }

// maxConns lets twelve such tests share the server's 200 connections.
const maxConns = 16

func (c *cluster) create(ctx context.Context, sets []migrations.Set) (*pgxpool.Pool, func() error, error) {
	source, err := c.template(ctx, sets)
	if err != nil {
		return nil, nil, fmt.Errorf("build template database: %w", err)
	}
	name := "test_" + strings.ToLower(rand.Text()[:12])
	// file_copy takes 8 ms here and wal_log 15 ms: the template is small, so the checkpoints are cheap.
	if err := c.exec(ctx, "create database "+name+" template "+source+" strategy file_copy"); err != nil {
		return nil, nil, fmt.Errorf("create test database: %w", err)
	}
	cfg, err := pgxpool.ParseConfig(c.server.DSN(name))
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return pool, func() error { return c.drop(name) }, nil
}

func (c *cluster) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return c.exec(ctx, "drop database if exists "+name+" with (force)")
}

func (c *cluster) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.server.DSN("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func (c *cluster) keepDatabase(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, name)
}

func (c *cluster) template(ctx context.Context, sets []migrations.Set) (string, error) {
	hash, err := fingerprint(sets)
	if err != nil {
		return "", err
	}
	name := "template_" + hash
	c.mu.Lock()
	build := c.templates[name]
	if build == nil {
		build = sync.OnceValue(func() error { return c.build(ctx, name, sets) })
		c.templates[name] = build
	}
	c.mu.Unlock()
	return name, build()
}

func (c *cluster) build(ctx context.Context, template string, sets []migrations.Set) error {
	// The first test's end would cancel the template for all that share it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	err := c.exec(ctx, "create database "+template)
	if err == nil {
		_, err = migrations.Apply(ctx, c.server.DSN(template), sets...)
	}
	return err
}

func fingerprint(sets []migrations.Set) (string, error) {
	sum := sha256.New()
	for _, set := range sets {
		err := fs.WalkDir(set.FS, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(set.FS, path)
			fmt.Fprintf(sum, "%q %q %d\n%s", set.Name, path, len(content), content)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func Unreachable(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), "postgres://postgres@127.0.0.1:1/postgres?sslmode=disable")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
