package window

import "slices"

// landmark says that the sequence head was read, and then the transaction id was taken. So a transaction with a higher
// id took it after the head was read; and since it takes its positions after its id (column order), they all lie above
// the head.
type landmark struct {
	xid  uint64
	head int64
}

// landmarks are in the order in which they were made: ids and heads ascend.
type landmarks []landmark

// below returns the head above which every row of a transaction with this id or a higher one lies.
func (m landmarks) below(xid uint64) int64 {
	for _, x := range slices.Backward(m) {
		if x.xid < xid {
			return x.head
		}
	}
	return 0
}

// start is the position above which the rows lie that are visible in cur and not in done. Such a row's transaction
// either began after done was taken, or was running then and has ended since.
func (m landmarks) start(done, cur snapshot) int64 {
	pos := m.below(done.xmax)
	for _, xid := range done.running {
		if cur.sees(xid) {
			pos = min(pos, m.below(xid))
		}
	}
	return pos
}

// kept are the landmarks that a later window, which starts from done, can still need: one for each transaction that is
// running in done, one for those that begin after it, and those too young to say: of the change that stored the window
// that is done. With the one that is made now there are never more of them than running transactions, plus three.
func (m landmarks) kept(done snapshot) landmarks {
	var kept landmarks
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

// columns are the landmarks as the cursor row stores them.
func (m landmarks) columns() (xids []uint64, heads []int64) {
	xids, heads = make([]uint64, len(m)), make([]int64, len(m))
	for i, x := range m {
		xids[i], heads[i] = x.xid, x.head
	}
	return xids, heads
}

func landmarksOf(xids []uint64, heads []int64) landmarks {
	m := make(landmarks, min(len(xids), len(heads)))
	for i := range m {
		m[i] = landmark{xids[i], heads[i]}
	}
	return m
}

// ScanStart is the position above which the rows lie that wait: visible in the snapshot now and not in done, with the
// landmarks of the cursor row.
func ScanStart(done, now string, xids []uint64, heads []int64) (int64, error) {
	published, err := parseSnapshot(done)
	if err != nil {
		return 0, err
	}
	current, err := parseSnapshot(now)
	if err != nil {
		return 0, err
	}
	return landmarksOf(xids, heads).start(published, current), nil
}
