// Package pgtest gives every test its own database on a real PostgreSQL.
//
// One cluster serves a test binary. It starts with the first test that asks for a database, a child process on a unix
// socket with fsync off, and ends with the binary. A machine without PostgreSQL fetches it; where that fails too, the
// test fails: a test that needs a database is never skipped.
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
	"time"

	"go.uber.org/goleak"

	"example.com/twinbox/dev/local/postgres"
)

// Main runs a package's tests and exits: func TestMain(m *testing.M) { pgtest.Main(m) }. It stops the cluster and fails
// the package if a goroutine is left. Where a test failed its databases are kept, and stderr says how to look at them.
//
// With -run or in a child process that asks for no database, no cluster is started. m is the *testing.M, or another
// harness around it. Tests with a database wait more than they compute, so at least eight run in parallel unless
// -parallel, or TestMain by that flag, has another number.
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

// cluster is the server that all tests of a binary share.
type cluster struct {
	start sync.Once
	err   error

	folder string
	server *postgres.Server

	mu        sync.Mutex
	templates map[string]*template
	kept      []string // databases of failed tests
}

var shared cluster

const startTimeout = 5 * time.Minute // a first fetch may be slow

func (c *cluster) get() (*cluster, error) {
	c.start.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		c.templates = map[string]*template{}
		c.folder, c.server, c.err = startServer(ctx, postgres.Config{Settings: map[string]string{
			"max_connections": "200", "max_prepared_transactions": "20",
		}})
	})
	return c, c.err
}

// startServer starts a server in a fresh folder.
func startServer(ctx context.Context, cfg postgres.Config) (folder string, server *postgres.Server, err error) {
	if folder, err = newFolder(places()); err != nil {
		return "", nil, err
	}
	cfg.Dir = dataIn(folder)
	if server, err = postgres.Start(ctx, found(cfg)); err != nil {
		return "", nil, errors.Join(err, removeFolder(folder))
	}
	return folder, server, nil
}

// found says where PostgreSQL's programs come from.
func found(cfg postgres.Config) postgres.Config {
	cfg.BinDir, cfg.SkipInstalled = os.Getenv("PG_BIN"), os.Getenv("TWINBOX_TEST_FETCH") != ""
	cfg.Progress = os.Stderr
	return cfg
}

const stopTimeout = 30 * time.Second

// stop ends the cluster and removes its folder, or keeps it for a look at what a failed test left.
func (c *cluster) stop() error {
	if c.server == nil {
		return nil
	}
	if len(c.kept) == 0 {
		return removeServer(c.server, c.folder)
	}
	return errors.Join(stopServer(c.server), keepFolder(c.folder, c.kept))
}

func stopServer(server *postgres.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return server.Stop(ctx)
}

func removeServer(server *postgres.Server, folder string) error {
	return errors.Join(stopServer(server), removeFolder(folder))
}
