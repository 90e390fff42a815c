// Package postgres runs PostgreSQL as a child of this process: initdb once, then the server on a unix socket.
//
// The child never outlives its parent on Linux, not even after SIGKILL: the kernel sends it a fast shutdown. It does
// not listen on TCP and trusts every user who may enter its socket's folder, which is its own user alone. It runs for
// root, too, which PostgreSQL refuses: see identity_linux.go.
//
// It serves development and tests. It is not a way to run PostgreSQL in production.
package postgres

import (
	"errors"
	"io"
	"maps"
	"slices"
)

// Config describes one server. Only Dir is required.
type Config struct {
	// Dir is the data directory. initdb creates it when it does not exist; its parent must exist.
	Dir string
	// BinDir holds initdb and postgres. Default: they are looked for, and fetched if there are none; see
	// [binaries.Ensure].
	BinDir string
	// SkipInstalled fetches PostgreSQL even if it is installed.
	SkipInstalled bool
	// Progress receives a line per step of a fetch. Default: silent.
	Progress io.Writer
	// Durable keeps fsync on, so that acknowledged commits survive a crash. Default off, for tests.
	Durable bool
	// Settings are server parameters that win over the package's own, e.g. "max_connections": "200".
	Settings map[string]string
	// Log receives the output of initdb and the server. Default: only the last lines are kept, for errors.
	Log io.Writer
	// Account makes root run a new cluster as the account postgres, else nobody, as it does where the kernel denies user
	// namespaces. It is for tests.
	Account bool

	socketDir string // "" = a new one; kept over a restart
}

// Superuser is the role that owns a server started here.
const Superuser = "postgres"

// Errors that a caller can act on.
var (
	// ErrInUse is returned by Start when a different server runs on the data directory. Stop that one.
	ErrInUse = errors.New("data directory is in use by another server")
	// ErrOwner is returned by Start when the data directory belongs to a user this process cannot act for.
	ErrOwner = errors.New("data directory belongs to another user")
	// ErrExited is returned by Start when initdb or the server ended before it was ready; the text has its last words.
	ErrExited = errors.New("server ended before it was ready")
)

// arguments returns the server's command line. Logical WAL costs nothing here and lets a WAL reader be tried.
func (c Config) arguments() []string {
	settings := map[string]string{
		"listen_addresses": "", "unix_socket_permissions": "0700", "wal_level": "logical", "timezone": "UTC",
		"log_timezone": "UTC",
	}
	if !c.Durable { // synchronous_commit stays on: the outbox refuses a server without it, and here it costs a write
		settings["fsync"], settings["full_page_writes"] = "off", "off"
	}
	maps.Copy(settings, c.Settings)
	args := []string{"-D", c.Dir, "-k", c.socketDir}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}
