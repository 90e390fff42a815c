package relay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

type snapshot struct {
	text       string
	xmin, xmax uint64
	running    []uint64 // between xmin and xmax, ascending
}

// ScanText reads PostgreSQL's text form, xmin:xmax:running,...
func (s *snapshot) ScanText(v pgtype.Text) error {
	*s = snapshot{text: v.String}
	parts := strings.Split(s.text, ":")
	if len(parts) != 3 {
		return fmt.Errorf("parse snapshot: %q has not three parts", s.text)
	}
	ids := append(parts[:2], strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' })...)
	for _, id := range ids {
		xid, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return fmt.Errorf("parse snapshot: %w", err)
		}
		s.running = append(s.running, xid)
	}
	s.xmin, s.xmax, s.running = s.running[0], s.running[1], s.running[2:]
	return nil
}

// sees is pg_visible_in_snapshot.
func (s snapshot) sees(xid uint64) bool {
	_, running := slices.BinarySearch(s.running, xid)
	return xid < s.xmax && !running
}

// landmarks are pairs: the sequence's head was read, then the transaction id was taken. A transaction with a higher id
// inserts above that head.
type landmarks struct {
	xids  []uint64
	heads []int64
}

// below returns a head that all rows of the transactions with this id or a higher one lie above.
func (m landmarks) below(xid uint64) int64 {
	for i, x := range slices.Backward(m.xids) {
		if x < xid {
			return m.heads[i]
		}
	}
	return 0
}

// start returns the position above which all rows lie that are visible in now and not in done.
func (m landmarks) start(done, now snapshot) int64 {
	position := m.below(done.xmax)
	for _, xid := range done.running {
		if now.sees(xid) {
			position = min(position, m.below(xid))
		}
	}
	return position
}

func (m landmarks) kept(done snapshot) (kept landmarks) {
	for i, x := range m.xids {
		next := done.xmax
		if i+1 < len(m.xids) {
			next = m.xids[i+1]
		}
		isNewest := func(xid uint64) bool { return x < xid && next >= xid }
		if next >= done.xmax || slices.ContainsFunc(done.running, isNewest) {
			kept.xids, kept.heads = append(kept.xids, x), append(kept.heads, m.heads[i])
		}
	}
	return kept
}
