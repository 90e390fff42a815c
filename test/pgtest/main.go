// Package pgtest gives every test its own database on a real PostgreSQL.
//
// One server serves a test binary, as a child process with fsync off. A machine without PostgreSQL fetches it. A test
// that needs a database is never skipped.
package pgtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/twinbox/dev/local/postgres"
)

// Main runs a package's tests and exits: func TestMain(m *testing.M) { pgtest.Main(m) }. It stops the server and fails
// the package if a goroutine is left. It keeps the databases of failed tests, and prints the command to read them. At
// least eight tests run in parallel, because they wait more than they compute; -parallel overrides that.
func Main(m interface{ Run() int }, leaks ...goleak.Option) {
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(max(8, runtime.GOMAXPROCS(0)))) // the command line is parsed later
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(leaks...); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: goroutines left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

type cluster struct {
	start sync.Once
	err   error

	folder string
	server *postgres.Server

	mu        sync.Mutex
	templates map[string]func() error
	kept      []string
}

var shared cluster

const startTimeout = 5 * time.Minute

func (c *cluster) get() (*cluster, error) {
	c.start.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		c.templates = map[string]func() error{}
		c.folder, c.server, c.err = startServer(ctx, postgres.Config{Settings: map[string]string{
			"max_connections": "200", "max_prepared_transactions": "20",
		}})
	})
	return c, c.err
}

func startServer(ctx context.Context, cfg postgres.Config) (folder string, server *postgres.Server, err error) {
	if folder, err = newFolder(places()); err != nil {
		return "", nil, err
	}
	cfg.Dir, cfg.Progress = dataIn(folder), os.Stderr
	if server, err = postgres.Start(ctx, cfg); err != nil {
		return "", nil, errors.Join(err, removeFolder(folder))
	}
	return folder, server, nil
}

func (c *cluster) stop() error {
	if c.server == nil {
		return nil
	}
	if len(c.kept) == 0 {
		return removeServer(c.server, c.folder)
	}
	return errors.Join(c.server.Close(), keepFolder(c.folder, c.kept))
}

func removeServer(server *postgres.Server, folder string) error {
	return errors.Join(server.Close(), removeFolder(folder))
}

// Durable starts a server with fsync on, which the test may kill. It ends with the test.
func Durable(t testing.TB) *postgres.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	folder, server, err := startServer(ctx, postgres.Config{Durable: true})
	require.NoError(t, err, "no PostgreSQL for this test")
	t.Cleanup(func() { require.NoError(t, removeServer(server, folder)) })
	return server
}

// Restart starts an ended server of [Durable] again, under its old DSN, until the test ends.
func Restart(t testing.TB, server *postgres.Server) *postgres.Server {
	t.Helper()
	again, err := server.Restart(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	return again
}
