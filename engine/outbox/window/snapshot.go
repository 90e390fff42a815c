package window

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// snapshot is a pg_snapshot: which transactions had ended when it was taken. It is compared and sent back in the
// server's own text; the numbers are for the few questions that are asked here.
type snapshot struct {
	text    string
	xmin    uint64   // all below have ended
	xmax    uint64   // none from here on had begun
	running []uint64 // those in between that had not ended, ascending
}

// parseSnapshot reads xmin:xmax:xip,xip.
func parseSnapshot(text string) (snapshot, error) {
	s := snapshot{text: text}
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return s, fmt.Errorf("parse snapshot %q: not three fields", text)
	}
	var err error
	if s.xmin, err = strconv.ParseUint(fields[0], 10, 64); err != nil {
		return s, fmt.Errorf("parse snapshot: %w", err)
	}
	if s.xmax, err = strconv.ParseUint(fields[1], 10, 64); err != nil {
		return s, fmt.Errorf("parse snapshot: %w", err)
	}
	for id := range strings.SplitSeq(fields[2], ",") {
		if id == "" {
			continue
		}
		xid, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return s, fmt.Errorf("parse snapshot: %w", err)
		}
		s.running = append(s.running, xid)
	}
	return s, nil
}

// sees is pg_visible_in_snapshot.
func (s snapshot) sees(xid uint64) bool {
	if xid < s.xmin {
		return true
	}
	_, running := slices.BinarySearch(s.running, xid)
	return xid < s.xmax && !running
}
