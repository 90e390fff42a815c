package postgres

import (
	"errors"
	"io"
	"maps"
	"slices"
	"time"
)

// Config describes one server. Only Dir is required.
type Config struct {
	// Dir is the data directory. It is created by initdb when it does not exist; its parent must exist.
	Dir string
	// BinDir holds initdb and postgres. Default: they are looked for, and fetched where there are none; see
	// [binaries.Ensure].
	BinDir string
	// SkipInstalled fetches PostgreSQL even where it is installed.
	SkipInstalled bool
	// Progress receives a line per step of a fetch. Default: silent.
	Progress io.Writer
	// Durable keeps fsync on, so that acknowledged commits survive a crash. Default off, for tests.
	Durable bool
	// Settings are server parameters that win over the package's own, e.g. "max_connections": "200".
	Settings map[string]string
	// Log receives what initdb and the server print. Default: nothing is kept but the tail shown in errors.
	Log io.Writer
	// StartTimeout bounds initdb and the wait for the first connection, each. Default 60 s.
	StartTimeout time.Duration
	// Identity says how a process of root drops what PostgreSQL refuses. Default [Auto]; the others are for tests.
	Identity Identity

	socketDir string // "" = a new one; kept over a restart
}

// Identity is the way in which a process of root becomes acceptable to PostgreSQL. It has no effect on other users.
type Identity int

const (
	// Auto takes the user namespace and falls back to the account where the kernel denies it. A data directory that
	// exists is always entered in the way in which it was made.
	Auto Identity = iota
	// Namespace maps root to another user inside a user namespace: files stay root's, no chown, any folder will do.
	Namespace
	// Account switches to the account "postgres", else "nobody", and gives it the data directory.
	Account
)

// Errors that a caller can act on.
var (
	// ErrInUse is returned by Start when another server runs on the data directory. Stop that one.
	ErrInUse = errors.New("data directory is in use by another server")
	// ErrOwner is returned by Start when the data directory belongs to a user this process cannot act for.
	ErrOwner = errors.New("data directory belongs to another user")
	// ErrExited is returned by Start when initdb or the server ended before it was ready; the text has its last words.
	ErrExited = errors.New("server ended before it was ready")
)

func (c Config) withDefaults() Config {
	if c.StartTimeout <= 0 {
		c.StartTimeout = time.Minute
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	return c
}

// arguments gives the server's command line. Logical WAL costs nothing here and lets a WAL reader be tried.
func (c Config) arguments() []string {
	settings := map[string]string{
		"listen_addresses":        "",
		"unix_socket_permissions": "0700",
		"wal_level":               "logical",
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	if !c.Durable { // synchronous_commit stays on: the outbox refuses a server without it, and here it costs a write
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, c.Settings)

	args := []string{"-D", c.Dir, "-k", c.socketDir}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}
