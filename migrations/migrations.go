// Package migrations holds the SQL of every table and brings a database up to it.
//
// A set is a folder of numbered files with its own version table, so that a service composes its schema of what it
// uses (outbox, inbox) and what is its own, and each part counts for itself.
package migrations

import (
	"database/sql"
	"embed"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// Set is one numbered series of migrations.
type Set struct {
	// Name names the version table: "migration_<name>".
	Name string
	// FS holds the files NNNN_what.sql in its root.
	FS fs.FS
}

//go:embed */*.sql
var files embed.FS

// The sets, each one folder.
var (
	Audit        = folder("audit")
	Outbox       = folder("outbox")
	Inbox        = folder("inbox")
	Lease        = folder("lease")
	Customer     = folder("customer")
	Notification = folder("notification")
)

// For lists what a service's database consists of, in the order of application: what every service has, more, and the
// folder of the service's name, unless it has no tables of its own yet.
func For(service string, more ...Set) []Set {
	sets := append([]Set{Audit, Outbox, Inbox}, more...)
	if _, err := fs.Stat(files, service); err != nil {
		return sets
	}
	return append(sets, folder(service))
}

// ForCustomer is For the Customer service.
func ForCustomer() []Set { return For(Customer.Name) }

// ForNotification is For the Notification service.
func ForNotification() []Set { return For(Notification.Name, Lease) }

func folder(name string) Set {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the name is not a path
	}
	return Set{Name: name, FS: sub}
}

func (s Set) table() string { return "migration_" + s.Name }

func (s Set) provider(db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, db, s.FS, goose.WithTableName(s.table()),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
}
