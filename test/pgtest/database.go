package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
)

// New gives the test an empty database with the sets' tables, and a pool on it. The database is dropped when the test
// ends, and kept when it failed. Databases share one server: what PostgreSQL counts per server (transaction ids,
// snapshots' xmin, advisory locks do not) is shared with the tests that run at the same time.
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

// Open is [New] for an Example, which has no testing.TB. Call the function when done. It panics where New fails.
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

// DSN gives the URL of the pool's database, for what opens its own connections.
func DSN(pool *pgxpool.Pool) string { return pool.Config().ConnString() }

// maxConns lets a test be as concurrent as it likes; twelve such tests fit the server's 200.
const maxConns = 16

func (c *cluster) create(ctx context.Context, sets []migrations.Set) (*pgxpool.Pool, func() error, error) {
	source, err := c.template(ctx, sets)
	if err != nil {
		return nil, nil, fmt.Errorf("build template database: %w", err)
	}
	name := "test_" + strings.ToLower(rand.Text()[:12])
	// file_copy takes 8 ms here and wal_log 15 ms: the template is small, so the checkpoints it asks for are cheap.
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
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return c.exec(ctx, "drop database if exists "+name+" with (force)")
}

// exec runs a statement on a connection of its own: what creates and drops databases is rare.
func (c *cluster) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.server.DSN("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	if closeErr := conn.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}

func (c *cluster) keepDatabase(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, name)
}

// template is a migrated database that test databases are copied from.
type template struct {
	build sync.Once
	err   error
}

// template builds the database for a list of sets once. The name is a hash of all SQL, so two lists that mean the same
// share it.
func (c *cluster) template(ctx context.Context, sets []migrations.Set) (string, error) {
	hash, err := fingerprint(sets)
	if err != nil {
		return "", err
	}
	name := "template_" + hash
	c.mu.Lock()
	t := c.templates[name]
	if t == nil {
		t = &template{}
		c.templates[name] = t
	}
	c.mu.Unlock()
	t.build.Do(func() {
		// Not the first test's context: its end would fail all that share the template.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if t.err = c.exec(ctx, "create database "+name); t.err == nil {
			_, t.err = migrations.Apply(ctx, c.server.DSN(name), sets...)
		}
	})
	return name, t.err
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

// Unreachable is a pool whose server takes no connection.
func Unreachable(t testing.TB) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig("postgres://postgres@127.0.0.1/postgres?sslmode=disable")
	require.NoError(t, err)
	cfg.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}
