// Package migrations holds the SQL of every table and brings a database up to it.
//
// A set is a folder of numbered files with its own version table, so that a service composes its schema of what it
// uses (outbox, inbox) and what is its own, and each part counts for itself.
package migrations

import (
	"embed"
	"io/fs"
)

// Set is one numbered series of migrations.
type Set struct {
	// Name names the version table: "migration_<name>".
	Name string
	// FS holds the files NNNN_what.sql in its root.
	FS fs.FS
}

//go:embed all:audit all:outbox all:inbox all:lease all:customer all:notification
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

// ForCustomer lists what the Customer service's database consists of, in the order of application.
func ForCustomer() []Set { return []Set{Audit, Outbox, Inbox, Customer} }

// ForNotification lists what the Notification service's database consists of, in the order of application.
func ForNotification() []Set { return []Set{Audit, Outbox, Inbox, Lease, Notification} }

func folder(name string) Set {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the name is a constant that the embed line lists
	}
	return Set{Name: name, FS: sub}
}

func (s Set) table() string { return "migration_" + s.Name }
