package poison

import "time"

// Record is a record of the partition as far as an attempt needs it.
type Record struct {
	First, Last int64 // offsets; they differ where one record stands for a damaged batch
	Ignored     bool  // no handler runs for it, so it is no suspect
}

// suspect is a range of a partition's offsets in which something may end the process that handles it.
type suspect struct {
	from, to int64
	deaths   int       // attempts at the range, or at one that it is a part of, that ended a process
	owner    string    // of the last attempt at the range as it is; "" for a half that was not attempted by itself
	since    time.Time // when the last attempt began
	alone    bool      // nothing else may run in the process meanwhile
	spent    bool      // it is one record that has ended as many processes as a record may
}

// suspected says how many of the records, from the first on, may share an attempt, and what they are suspected of; nil
// for nothing. A range at which a process ended is halved:
//
//	1st death  nothing was suspected: which partition's batch it was, and from where to where, is not known
//	2nd        the first batch of each partition that was in flight ran again as it was, counted
//	3rd        the first half of the batch, or the second after the first came to its end
//	...
//	10th       the last of 200 records, by itself
func (a *Assignment) suspected(records []Record) (n int, s *suspect) {
	first, maxAttempts := records[0].First, a.guard.cfg.MaxAttempts
	a.dropSuspects(first - 1)
	n = len(records)
	if len(a.suspects) > 0 {
		if r := a.suspects[0]; r.from <= first {
			return halve(records, r, maxAttempts)
		}
		n = within(records, a.suspects[0].from-1)
	}
	if a.unproven == 0 || a.isNewer(first) {
		return n, nil
	}
	n = min(n, a.unproven)
	return n, &suspect{from: first, to: records[n-1].Last, alone: n == 1 && maxAttempts == 1}
}

// halve is the part of the range to attempt next. Where not all of the range is there yet, it is less than a half.
func halve(records []Record, r suspect, maxAttempts int) (n int, s *suspect) {
	n = within(records, r.to)
	if r.owner != "" && n > 1 {
		n = (n + 1) / 2
	}
	s = &suspect{from: records[0].First, to: records[n-1].Last, deaths: r.deaths, since: r.since, alone: true}
	if s.from == r.from && s.to == r.to {
		s.owner = r.owner
		s.spent = n == 1 && s.owner != "" && s.deaths >= maxAttempts
	}
	return n, s
}

// narrow replaces the range that is halved by its parts: the one to attempt and the rest, with the deaths of the range.
func (a *Assignment) narrow(records []Record, s *suspect) (whole suspect, rest *suspect) {
	whole = a.suspects[0]
	parts := []suspect{*s}
	if s.to < whole.to {
		rest = &suspect{from: s.to + 1, to: whole.to, deaths: whole.deaths, since: whole.since}
		if records[within(records, whole.to)-1].Last < whole.to {
			rest.owner = whole.owner // it may still be more than a half
		}
		parts = append(parts, *rest)
	}
	a.suspects = append(parts, a.suspects[1:]...)
	return whole, rest
}

// Settle says that the partition's records up to an offset have come to their end, so many of them not before the last
// owner did.
func (a *Assignment) Settle(upTo int64, fresh int) {
	if !a.Suspicious() {
		return
	}
	a.fresh = a.fresh || fresh > 0
	a.unproven = max(0, a.unproven-fresh)
	if a.isNewer(upTo + 1) {
		a.unproven = 0
	}
	a.dropSuspects(upTo)
	if len(a.suspects) > 0 && a.suspects[0].from <= upTo {
		a.suspects[0].from, a.suspects[0].owner = upTo+1, ""
	}
}

// dropSuspects drops the ranges that end at the offset or before.
func (a *Assignment) dropSuspects(upTo int64) {
	for len(a.suspects) > 0 && a.suspects[0].to <= upTo {
		a.suspects = a.suspects[1:]
	}
}

// Suspicious says whether anything in the partition may have ended a process and has not yet proved harmless.
func (a *Assignment) Suspicious() bool { return a.unproven > 0 || len(a.suspects) > 0 }

// isNewer says whether a record was written after this process had begun to read the partition: then it was under way
// nowhere before.
func (a *Assignment) isNewer(offset int64) bool { return a.end > 0 && offset >= a.end }

// within counts the records, from the first on, up to an offset; the first one always.
func within(records []Record, offset int64) int {
	n := 1
	for n < len(records) && records[n].Last <= offset {
		n++
	}
	return n
}
