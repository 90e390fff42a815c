// Package postgres runs PostgreSQL as a child of this process, for development and tests: initdb once, then the server
// on a unix socket.
//
// On Linux the child never outlives its parent. It trusts every user who may enter its socket's folder, which is its
// own user alone. It runs for root, too: see identity_linux.go.
package postgres

import (
	"errors"
	"io"
	"maps"
	"slices"
)

// Config describes one server. Only Dir is required.
type Config struct {
	// Dir is the data directory. initdb creates it; its parent must exist.
	Dir string
	// Progress receives a line per step of a fetch. Default: silent.
	Progress io.Writer
	// Durable keeps fsync on. Default off: a crash of the machine loses commits.
	Durable bool
	// Settings override server parameters, e.g. "max_connections": "200".
	Settings map[string]string
	// Log receives the output of the programs. Default: errors have its last lines.
	Log io.Writer
	// Account makes root use the account postgres or nobody, as where the kernel denies user namespaces. It is for tests.
	Account bool

	binDir    string // of [binaries.Ensure]
	socketDir string // "" = a new one; kept over a restart
}

const Superuser = "postgres"

// ErrInUse means that a different server runs on the data directory.
var ErrInUse = errors.New("data directory is in use by another server")

// Logical WAL costs nothing here and lets a WAL reader be tried. Dynamic shared memory in the data directory goes with
// it; elsewhere a killed server's would stay.
func (c Config) arguments() []string {
	settings := map[string]string{
		"listen_addresses": "", "unix_socket_permissions": "0700", "wal_level": "logical", "timezone": "UTC",
		"log_timezone": "UTC", "dynamic_shared_memory_type": "mmap",
	}
	if !c.Durable { // synchronous_commit stays on: the outbox needs it, and here it costs a write
		settings["fsync"], settings["full_page_writes"] = "off", "off"
	}
	maps.Copy(settings, c.Settings)
	args := []string{"-D", c.Dir, "-k", c.socketDir}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}
