package outbox

import "slices"

// mark is a landmark: the sequence head was read, then the transaction id was taken. So a transaction with a higher id
// took it after the head was read; and since it takes its positions after its id (column order), they all lie above
// the head.
type mark struct {
	xid  uint64
	head int64
}

// marks are in the order in which they were made: ids and heads ascend.
type marks []mark

// below is F: every row of a transaction with this id or a higher one has a position above it.
func (m marks) below(xid uint64) int64 {
	for _, x := range slices.Backward(m) {
		if x.xid < xid {
			return x.head
		}
	}
	return 0
}

// start is where to look for rows that are visible in cur and not in done. Such a row's transaction either began after
// done was taken, or was running then and has ended since.
func (m marks) start(done, cur snapshot) int64 {
	pos := m.below(done.xmax)
	for _, xid := range done.running {
		if cur.sees(xid) {
			pos = min(pos, m.below(xid))
		}
	}
	return pos
}

// kept are the marks that some later window, which starts from done, can still need: one for each transaction that is
// running in done, one for those that begin after it, and those too young to say. So there are never more of them than
// running transactions, plus two.
func (m marks) kept(done snapshot) marks {
	var kept marks
	for i, x := range m {
		newest := i == len(m)-1
		needed := x.xid >= done.xmax || newest || m[i+1].xid >= done.xmax
		for _, xid := range done.running {
			needed = needed || x.xid < xid && (newest || m[i+1].xid >= xid)
		}
		if needed {
			kept = append(kept, x)
		}
	}
	return kept
}

// columns are the marks as the cursor row stores them.
func (m marks) columns() (xids []uint64, heads []int64) {
	xids, heads = make([]uint64, len(m)), make([]int64, len(m))
	for i, x := range m {
		xids[i], heads[i] = x.xid, x.head
	}
	return xids, heads
}

func marksOf(xids []uint64, heads []int64) marks {
	m := make(marks, min(len(xids), len(heads)))
	for i := range m {
		m[i] = mark{xids[i], heads[i]}
	}
	return m
}
