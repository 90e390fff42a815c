package relay

import (
	"slices"

	"example.com/twinbox/engine/outbox/window"
)

// receipts are for what was taken and is not yet recorded. They outlive the session: a page that has to be read again
// because the database went away is not sent again.
type receipts struct {
	rows []receipt
}

// receipt has the id beside the position, since a database that was set back gives a position to another event.
type receipt struct {
	position int64
	id       [16]byte
}

func receiptOf(r *window.Record) receipt { return receipt{r.Position, r.ID} }

// add drops receipts rather than grow without bound if nothing gets recorded: that costs duplicates, nothing else.
func (m *receipts) add(r *window.Record) {
	if len(m.rows) < maxBatchSize {
		m.rows = append(m.rows, receiptOf(r))
	}
}

// forget is for rows that are recorded.
func (m *receipts) forget(is func(receipt) bool) { m.rows = slices.DeleteFunc(m.rows, is) }

// asSet is for the next session, which asks it about each row.
func (m *receipts) asSet() map[receipt]bool {
	set := make(map[receipt]bool, len(m.rows))
	for _, r := range m.rows {
		set[r] = true
	}
	return set
}
