// Package migrations holds the SQL of every table and brings a database up to it. A set is a folder of numbered files
// with its own version table. A service composes its schema of sets.
package migrations

import (
	"database/sql"
	"embed"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// Set is one numbered series of migrations.
type Set struct {
	Name string // of the version table, migration_NAME
	FS   fs.FS  // with the files NNNN_what.sql in its root
}

//go:embed */*.sql
var files embed.FS

var (
	Audit  = Folder("audit", files, "audit")
	Outbox = Folder("outbox", files, "outbox")
	// Inbox needs Audit: a replay writes its rows, too.
	Inbox = Folder("inbox", files, "inbox")
	Lease = Folder("lease", files, "lease")
	// Command is listed last: a service may have made its table in a set of its own.
	Command = Folder("command", files, "command")
)

// Folder returns the set of a folder's files.
func Folder(name string, files fs.FS, path string) Set {
	sub, err := fs.Sub(files, path)
	if err != nil {
		panic(err) // not a path
	}
	return Set{Name: name, FS: sub}
}

func (s Set) table() string { return "migration_" + s.Name }

func (s Set) provider(db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, db, s.FS, goose.WithTableName(s.table()),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}
