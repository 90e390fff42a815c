package adminapi

import (
	"cmp"
	"slices"
	"time"
)

// stations are in the order in which an event meets them.
var stations = []StoryStepStation{
	StoryStepStationRequest, StoryStepStationOutbox, StoryStepStationRecord,
	StoryStepStationInbox, StoryStepStationDeadLetter, StoryStepStationMail,
	StoryStepStationAudit,
}

// Owed is the outcome of the step at which a mail became due.
const Owed = string(Pending)

func station(s StoryStep) int { return slices.Index(stations, s.Station) }

// Inbox and dead letters share a clock.
func clock(s StoryStep) int {
	if s.Station == StoryStepStationDeadLetter {
		return slices.Index(stations, StoryStepStationInbox)
	}
	return station(s)
}

// InOrder sorts steps by time and joins duplicates. Their clocks may differ: it never puts the read of an event before
// its addition, nor its handling before its read.
func InOrder(all []StoryStep) []StoryStep {
	type told struct {
		StoryStep
		seems time.Time
	}
	kept := joined(all)
	slices.SortStableFunc(kept, func(a, b StoryStep) int {
		return cmp.Or(cmp.Compare(clock(a), clock(b)), a.At.Compare(b.At))
	})
	ordered := make([]told, len(kept))
	reached := make(map[string]told) // by event, its first step at the station where it is
	for i, s := range kept {
		ordered[i] = told{s, s.At}
		if s.EventID == "" || s.Station == StoryStepStationRequest { // its time may be any that a caller has set
			continue
		}
		before := reached[s.EventID]
		if before.seems.After(s.At) {
			ordered[i].seems = before.seems
		}
		if clock(before.StoryStep) != clock(s) {
			reached[s.EventID] = ordered[i]
		}
	}
	slices.SortStableFunc(ordered, func(a, b told) int {
		return cmp.Or(a.seems.Compare(b.seems), cmp.Compare(station(a.StoryStep), station(b.StoryStep)))
	})
	for i, s := range ordered {
		kept[i] = s.StoryStep
	}
	return kept
}

func joined(all []StoryStep) []StoryStep {
	kept := make([]StoryStep, 0, len(all))
	for _, step := range all {
		i := slices.IndexFunc(kept, func(k StoryStep) bool { return same(k, step) })
		switch {
		case i < 0:
			kept = append(kept, step)
		case kept[i].EventID == "" && step.EventID != "": // from a table of the service: the event has more
			step.Outcome = cmp.Or(step.Outcome, kept[i].Outcome)
			kept[i] = step
		case step.Station == StoryStepStationRecord && step.At.Before(kept[i].At), // who read it first
			step.Station == StoryStepStationMail && step.At.After(kept[i].At): // asked about twice: how far it is now
			kept[i] = step
		default:
			kept[i].Outcome = cmp.Or(kept[i].Outcome, step.Outcome)
		}
	}
	return kept
}

// same holds for a request that a table and an event know, and a record that several consumers read.
func same(a, b StoryStep) bool {
	if a.Station != b.Station {
		return false
	}
	switch a.Station {
	case StoryStepStationRequest:
		return a.Service == b.Service && a.Key == b.Key && a.At.Equal(b.At) &&
			(a.EventID == "" || b.EventID == "" || a.EventID == b.EventID)
	case StoryStepStationOutbox:
		return a.Service == b.Service && a.Position == b.Position
	case StoryStepStationRecord:
		return a.EventID == b.EventID && a.Topic == b.Topic && *a.Partition == *b.Partition && *a.Offset == *b.Offset
	case StoryStepStationMail:
		return a.Service == b.Service && a.Subject == b.Subject && (a.Outcome == Owed) == (b.Outcome == Owed)
	}
	return a.Service == b.Service && a.Consumer == b.Consumer && a.EventID == b.EventID && a.Subject == b.Subject &&
		a.Outcome == b.Outcome && a.At.Equal(b.At)
}

// Who returns the consumer or the service of the step. A record is of its topic, whichever service read it first.
func (s StoryStep) Who() string {
	if s.Station == StoryStepStationRecord {
		return s.Topic
	}
	return cmp.Or(s.Consumer, s.Service)
}
