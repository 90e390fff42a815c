package replay

import (
	"time"

	"example.com/twinbox/engine/inbox"
)

// Options say who replays and how carefully. By is required.
type Options struct {
	By     string
	Reason string
	// DryRun tells what a replay would try. It runs no handler and changes nothing.
	DryRun bool
	// Force replays what is refused as too_old or replay_limit; the audit trail says so.
	Force bool
	// AcceptGap replays what is refused as version_gap, of the dead letters that are picked and of those parked behind
	// them: the versions before it will never come, or no longer matter, and are skipped as stale if they do. What is
	// refused as version_jump takes Force as well. The audit trail says so.
	AcceptGap bool
	// Pace bounds the dead letters per second, so that a replay leaves room for the live events; a dry run does
	// not wait. nil: no bound.
	Pace *Pace
	// Limit bounds how many dead letters are tried. 0: the filter's limit, and all that are picked where it has none.
	Limit int
	// OnProgress is called after each dead letter, in the goroutine of the replay. Default: nothing.
	OnProgress func(Result)
}

// Report sums a replay up.
type Report struct {
	Matched   int           `json:"matched"` // dead letters that were looked at
	Keys      int           `json:"keys"`    // of these
	Applied   int           `json:"applied"`
	Duplicate int           `json:"duplicate"` // settled: the event had been applied
	Stale     int           `json:"stale"`     // settled: its key is further already
	Failed    int           `json:"failed"`
	Refused   int           `json:"refused"`
	Would     int           `json:"would_replay"`       // in a dry run
	Problems  []Result      `json:"problems,omitempty"` // the first 100 that failed or were refused
	Took      time.Duration `json:"took_ns"`
}

// WouldReplay is the outcome of a dead letter that a dry run would have tried.
const WouldReplay = "would_replay"

const maxProblems = 100

func (r *Report) add(one Result) {
	r.Matched++
	switch one.Outcome {
	case string(inbox.Applied):
		r.Applied++
	case string(inbox.Duplicate):
		r.Duplicate++
	case string(inbox.Stale):
		r.Stale++
	case WouldReplay:
		r.Would++
	case string(inbox.Failed):
		r.Failed++
	default:
		r.Refused++
	}
	if one.Code != "" && len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, one)
	}
}
