package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// inboxVariant is one way to consume a topic into a database.
type inboxVariant struct {
	name, label string
	slow        bool   // one event per transaction: fewer records
	once        bool   // at one number of partitions only
	checked     bool   // compares hashes and follows versions
	table       string // where the ids are remembered
	// consume handles every record of the run once at least, tells l of it, and returns when ctx ends.
	consume func(ctx context.Context, c consumption) error
	// write is what a variant without a broker has instead: it makes the rows, and then what writes them.
	write func(r *records) writer
}

// consumption is what a consumer works with.
type consumption struct {
	brokers []string
	topic   string
	group   string
	pool    *pgxpool.Pool
	records *records
	ledger  *handling
}

const (
	ownTable    = "public.inbox"
	byHandTable = "public.by_hand_inbox"
)

// inboxVariants are shown and run in this order.
var inboxVariants = []inboxVariant{
	{name: "hand", label: "by hand on watermill-kafka, id alone", slow: true, table: byHandTable, consume: byHand(false)},
	{
		name: "hand_checked", label: "by hand, with hash and version", slow: true, once: true, checked: true,
		table: ownTable, consume: byHand(true),
	},
	{name: "router", label: "ours in a Router", slow: true, table: ownTable, consume: routedInbox(false)},
	{
		name: "router_versioned", label: "ours in a Router, versioned", slow: true, once: true, checked: true,
		table: ownTable, consume: routedInbox(true),
	},
	{name: "batch1", label: "ours, batch 1", slow: true, table: ownTable, consume: ourInbox(1, false)},
	{
		name: "batch1_versioned", label: "ours, batch 1, versioned", slow: true, once: true, checked: true, table: ownTable,
		consume: ourInbox(1, true),
	},
	{name: "batch200", label: "ours, batch 200", table: ownTable, consume: ourInbox(inboxBatch, false)},
	{
		name: "batch200_versioned", label: "ours, batch 200, versioned", once: true, checked: true, table: ownTable,
		consume: ourInbox(inboxBatch, true),
	},
	{name: "ceiling", label: "ceiling: same rows from memory", table: ownTable, write: writeRows(false)},
	{
		name: "bulk", label: "from memory, domain rows as a set too", once: true, table: ownTable, write: writeRows(true),
	},
}

// duplicateVariants are measured with more redeliveries too.
var duplicateVariants = []string{"hand", "batch1", "batch200"}

func inboxVariantOf(name string) inboxVariant {
	for _, v := range inboxVariants {
		if v.name == name {
			return v
		}
	}
	panic("no variant " + name)
}
