package verify

import (
	"cmp"
	"slices"
)

// consumedView is what is known beside the facts when a consumer's topic is compared with its inbox.
type consumedView struct {
	consumer  string
	versioned bool
	parts     []part
	since     int64                 // what was processed before is not judged
	from      int64                 // the inbox remembers events from then on
	letters   map[place]bool        // where records lie that have a dead letter
	lettered  map[[2]uint64]bool    // id and payload hash of those
	ids       map[uint64]bool       // ids of those
	conflicts map[uint64]bool       // ids of which a record with another payload was only warned of
	edited    map[uint64]bool       // keys of which a dead letter was edited: its version may be another one since
	marks     map[uint64]int64      // the watermarks of some keys
	spans     map[uint64]span       // the versions on the topic of those that have a watermark
	counts    func(key uint64) bool // says whether the key is one of these
}

// span is the lowest and the highest version of a key.
type span struct{ from, to int64 }

// compareConsumed is V4, V7 and the inbox's half of V5.
func compareConsumed(v *consumedView, records []record, rows []remembered, out *result) (handled, again int64) {
	slices.SortFunc(records, recordsByID)
	slices.SortFunc(rows, func(a, b remembered) int { return cmp.Compare(a.id, b.id) })
	for i, j := 0, 0; i < len(rows) || j < len(records); {
		id := ^uint64(0)
		if i < len(rows) {
			id = rows[i].id
		}
		if j < len(records) {
			id = min(id, records[j].id)
		}
		these, _ := cut(rows[i:], id, func(r remembered) uint64 { return r.id })
		those, _ := cut(records[j:], id, func(r record) uint64 { return r.id })
		i, j = i+len(these), j+len(those)
		for k, r := range those {
			if v.handled(r, these, out) {
				handled++
				again += min(int64(k), 1)
			}
		}
		v.remembered(these, len(those) > 0, out)
	}
	return handled, again
}

// handled judges a record below the committed offset, and says whether it has what it must have.
func (v *consumedView) handled(r record, rows []remembered, out *result) bool {
	p := v.parts[r.part]
	if !r.handled || r.old || r.offset >= p.committed {
		return false
	}
	s := suspect{Subject: v.consumer, ID: r.id, Key: r.key, Version: r.version}
	switch {
	case len(rows) > 0 && (rows[0].hash == r.content || rows[0].conflict):
		return true
	case v.letters[place{r.offset, r.part}] || v.lettered[[2]uint64{r.id, r.content}]:
		return true
	case len(rows) > 0:
		s.Kind = Altered
		out.suspect("V4", s)
	case r.at < v.from:
		out.cannot(v.consumer, InboxForgot, 1)
	default:
		s.Kind = Lost
		out.suspect("V4", s)
	}
	return false
}

// remembered judges the inbox's rows of one id.
func (v *consumedView) remembered(rows []remembered, onTopic bool, out *result) {
	if len(rows) == 0 {
		return
	}
	r := rows[0]
	s := suspect{Subject: v.consumer, ID: r.id}
	if len(rows) > 1 {
		s.Kind = Twice
		out.suspect("V5", s)
	}
	if r.aside && !v.ids[r.id] {
		s.Kind = Lost
		out.suspect("V7", s)
	}
	if onTopic || r.part < 0 || v.letters[place{r.offset, r.part}] { // or it was edited and has another id since
		return
	}
	if r.processed < v.since {
		return
	}
	if int(r.part) >= len(v.parts) { // the topic is gone, or was made anew with fewer of them
		out.cannot(v.consumer, TopicForgot, 1)
		return
	}
	switch p := v.parts[r.part]; {
	case p.other:
		out.cannot(v.consumer, OtherTopic, 1)
		return
	case r.offset >= p.end && p.open:
		out.cannot(v.consumer, Open, 1)
		return
	case r.offset < p.oldest || r.processed < p.firstAt:
		out.cannot(v.consumer, TopicForgot, 1)
		return
	}
	if r.offset >= v.parts[r.part].from {
		s.Kind = Ghost
		out.suspect("V5", s)
	}
}

// behind is the half of V6 that each record is asked: the watermark of its key is not below it. A record that waits
// among the dead letters, or whose id belonged to another event, has not moved it.
func (v *consumedView) behind(r record, out *result) {
	if !v.versioned || r.version == 0 || !v.counts(r.key) {
		return
	}
	mark, known := v.marks[r.key]
	if known {
		of, seen := v.spans[r.key]
		if !seen {
			of.from = r.version
		}
		v.spans[r.key] = span{min(of.from, r.version), max(of.to, r.version)}
	}
	switch {
	case !r.handled || r.old || r.offset >= v.parts[r.part].committed || r.version <= mark,
		v.edited[r.key], v.conflicts[r.id], v.letters[place{r.offset, r.part}], v.ids[r.id]:
		return
	}
	out.suspect("V6", suspect{Kind: Reordered, Subject: v.consumer, ID: r.id, Key: r.key, Version: r.version})
}

// ahead is the other half: no watermark is above all of its key's versions. It is asked of keys whose first version is
// there: the highest one may be gone where the beginning of the log is, or the log before this one.
func (v *consumedView) ahead(out *result) {
	if slices.ContainsFunc(v.parts, func(p part) bool { return p.cut || p.open }) {
		return
	}
	for key, of := range v.spans {
		if mark := v.marks[key]; of.from == 1 && mark > of.to && !v.edited[key] {
			out.suspect("V6", suspect{Kind: Reordered, Subject: v.consumer, Key: key, Version: mark})
		}
	}
}
