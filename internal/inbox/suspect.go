package inbox

import "time"

// suspect is a range of a partition's offsets in which something may end the process that handles it.
type suspect struct {
	from, to int64
	deaths   int       // attempts at the range, or at one that it is a part of, that ended a process
	owner    string    // of the last attempt at the range as it is; "" for a half that was not attempted by itself
	since    time.Time // when the last attempt began
	alone    bool      // nothing else may run in the process meanwhile
	spent    bool      // it is one record that has ended as many processes as a record may
}

// suspected says how many of the items, from the first on, may share an attempt, and what they are suspected of; nil
// for nothing. A range at which a process ended is halved:
//
//	1st death  nothing was suspected: which partition's batch it was, and from where to where, is not known
//	2nd        the first batch of each partition that was in flight ran again as it was, counted
//	3rd        the first half of the batch, or the second after the first came to its end
//	...
//	10th       the last of 200 records, by itself
//
// So a record that ends each process that handles it is found in 2 + log2(INBOX_BATCH) deaths, wherever it lies, or in
// 1 + MaxAttempts if that is more. A process that is killed for another reason meanwhile halves what was in flight, and
// takes no count from what was not.
func (c *claim) suspected(items []*item, maxAttempts int) (n int, s *suspect) {
	first := items[0].origin.Offset
	for len(c.suspects) > 0 && c.suspects[0].to < first {
		c.suspects = c.suspects[1:]
	}
	n = len(items)
	if len(c.suspects) > 0 {
		if r := c.suspects[0]; r.from <= first {
			return halve(items, r, maxAttempts)
		}
		n = within(items, c.suspects[0].from-1)
	}
	if c.unproven == 0 || c.isNewer(first) {
		return n, nil
	}
	n = min(n, c.unproven)
	return n, &suspect{from: first, to: items[n-1].last(), alone: n == 1 && maxAttempts == 1}
}

// halve is the part of the range to attempt next. Where not all of the range is there yet, it is less than a half.
func halve(items []*item, r suspect, maxAttempts int) (n int, s *suspect) {
	n = within(items, r.to)
	if r.owner != "" && n > 1 {
		n = (n + 1) / 2
	}
	s = &suspect{from: items[0].origin.Offset, to: items[n-1].last(), deaths: r.deaths, since: r.since, alone: true}
	if s.from == r.from && s.to == r.to {
		s.owner = r.owner
		s.spent = n == 1 && s.owner != "" && s.deaths >= maxAttempts
	}
	return n, s
}

// narrow replaces the range that is halved by its parts: the one to attempt and the rest, with the deaths of the range.
func (c *claim) narrow(items []*item, s *suspect) (whole suspect, rest *suspect) {
	whole = c.suspects[0]
	parts := []suspect{*s}
	if s.to < whole.to {
		rest = &suspect{from: s.to + 1, to: whole.to, deaths: whole.deaths, since: whole.since}
		if items[within(items, whole.to)-1].last() < whole.to {
			rest.owner = whole.owner // it may still be more than a half
		}
		parts = append(parts, *rest)
	}
	c.suspects = append(parts, c.suspects[1:]...)
	return whole, rest
}

// settled says that the partition's records up to an offset have come to their end, so many of them not before the last
// owner did.
func (c *claim) settled(upTo int64, fresh int) {
	if c == nil || !c.suspicious() {
		return
	}
	c.fresh = c.fresh || fresh > 0
	c.unproven = max(0, c.unproven-fresh)
	if c.isNewer(upTo + 1) {
		c.unproven = 0
	}
	for len(c.suspects) > 0 && c.suspects[0].to <= upTo {
		c.suspects = c.suspects[1:]
	}
	if len(c.suspects) > 0 && c.suspects[0].from <= upTo {
		c.suspects[0].from, c.suspects[0].owner = upTo+1, ""
	}
}

// suspicious says whether anything in the partition may have ended a process and has not yet proved harmless.
func (c *claim) suspicious() bool { return c.unproven > 0 || len(c.suspects) > 0 }

// isNewer says whether a record was written after this process had begun to read the partition: then it was under way
// nowhere before.
func (c *claim) isNewer(offset int64) bool { return c.end > 0 && offset >= c.end }

// within counts the items, from the first on, up to an offset; the first one always.
func within(items []*item, offset int64) int {
	n := 1
	for n < len(items) && items[n].last() <= offset {
		n++
	}
	return n
}

// last is the last offset that the item stands for.
func (it *item) last() int64 { return max(it.origin.Offset, it.origin.LastOffset) }

// fresh counts the items that had not come to their end before. What had is processed, or has its dead letter.
func fresh(items []*item) (n int) {
	for _, it := range items {
		if it.outcome != Duplicate && it.outcome != Failed && !it.ignored && !it.again {
			n++
		}
	}
	return n
}
