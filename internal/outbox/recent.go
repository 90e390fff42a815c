package outbox

import "slices"

// recent is what was taken and is not yet recorded. It outlives the session: a page that has to be read again because
// the database went away is not sent again. Ids are kept with the positions, since a database that was set back gives a
// position to another event.
type recent struct {
	rows []receipt
}

type receipt struct {
	position int64
	id       [16]byte
}

func (r *record) receipt() receipt { return receipt{r.position, r.id} }

// add forgets rather than grow without bound if nothing gets recorded: that costs duplicates, nothing else.
func (m *recent) add(r *record) {
	if len(m.rows) < maxBatchSize {
		m.rows = append(m.rows, r.receipt())
	}
}

// forget is for rows that are recorded.
func (m *recent) forget(is func(receipt) bool) { m.rows = slices.DeleteFunc(m.rows, is) }

// set is for the next session, which asks it of every row.
func (m *recent) set() map[receipt]bool {
	if len(m.rows) == 0 {
		return nil
	}
	set := make(map[receipt]bool, len(m.rows))
	for _, r := range m.rows {
		set[r] = true
	}
	return set
}
