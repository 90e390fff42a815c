package verify

import (
	"fmt"
	"strings"
	"time"
)

// Kind names the fault.
type Kind string

// The kinds of findings.
const (
	Lost      Kind = "lost"      // it is upstream and not downstream
	Ghost     Kind = "ghost"     // it is downstream and not upstream
	Altered   Kind = "altered"   // it is not the same on both sides
	Twice     Kind = "twice"     // one id, or one version of a key, has two rows
	Gap       Kind = "gap"       // a version of a key is missing between two others
	Reordered Kind = "reordered" // a key's versions are not in their order
	Misplaced Kind = "misplaced" // a record is not in the topic-partition of its key
	Broken    Kind = "broken"    // a check of the service found it
)

var words = map[Kind]string{
	Lost: "lost", Ghost: "invented", Altered: "altered", Twice: "doubled", Gap: "missing before a later version",
	Reordered: "reordered", Misplaced: "misplaced", Broken: "without the right effect",
}

// Rule is V1 to V7, or the name of a check.
type Rule string

// Finding is one fault. It holds no personal data.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Rule    Rule   `json:"rule"`
	Subject string `json:"subject"` // the topic, the consumer or the check
	EventID string `json:"event_id,omitempty"`
	Type    string `json:"type,omitempty"` // of the event, where it is known
	Key     string `json:"key,omitempty"`
	Version int64  `json:"version,omitempty"`
	Detail  string `json:"detail"`
}

// Reason names why events could not be verified.
type Reason string

// The reasons.
const (
	TopicForgot     Reason = "the topic does not hold it any more"
	OutboxForgot    Reason = "the outbox has dropped its table partition"
	InboxForgot     Reason = "the inbox remembers no event of that time"
	FewerPartitions Reason = "its topic may have had fewer partitions when it was published"
	Open            Reason = "it lies behind a transaction of another producer that is still open"
	NotLookedAt     Reason = "suspects beyond the first thousand were not looked at again"
)

// Unverifiable counts events, or versions of keys, that could not be verified.
type Unverifiable struct {
	Subject string `json:"subject"`
	Reason  Reason `json:"reason"`
	Events  int64  `json:"events"`
}

// Produced counts a topic.
type Produced struct {
	Topic     string `json:"topic"`
	Published int64  `json:"published"` // rows
	Records   int64  `json:"records"`   // of this service, each event once
	Again     int64  `json:"again"`     // records that repeat one: sent again, or republished
	Foreign   int64  `json:"foreign"`   // records of others
	Waiting   int64  `json:"waiting"`   // rows that are not published yet
	Held      int64  `json:"held"`      // rows of parked keys
	Discarded int64  `json:"discarded"` // rows that an operator gave up
}

// Consumed counts a consumer.
type Consumed struct {
	Consumer string `json:"consumer"`
	Topic    string `json:"topic"`
	Handled  int64  `json:"handled"` // records with a row or dead letter, or stale
	Again    int64  `json:"again"`   // of these, records that repeat one
	Ignored  int64  `json:"ignored"` // records of types without a handler
	Pending  int64  `json:"pending"` // records above the committed offsets
	Dead     int64  `json:"dead"`    // dead letters that wait
}

// Verdict is the result of one verification.
type Verdict struct {
	At           time.Time      `json:"at"`             // when it was begun
	Since        time.Time      `json:"since,omitzero"` // events before it were not judged
	Produced     []Produced     `json:"produced"`
	Consumed     []Consumed     `json:"consumed"`
	Checks       []string       `json:"checks"` // that were run
	Findings     []Finding      `json:"findings"`
	Unverifiable []Unverifiable `json:"unverifiable"`
}

// Clean reports whether there is no finding.
func (v *Verdict) Clean() bool { return len(v.Findings) == 0 }

// Whole reports whether everything could be verified.
func (v *Verdict) Whole() bool { return len(v.Unverifiable) == 0 }

// Summary counts the findings: "2 lost, 1 invented".
func (v *Verdict) Summary() string {
	count := map[string]int{}
	var found []string
	for _, f := range v.Findings {
		if count[words[f.Kind]]++; count[words[f.Kind]] == 1 {
			found = append(found, words[f.Kind])
		}
	}
	for i, word := range found {
		found[i] = fmt.Sprintf("%d %s", count[word], word)
	}
	switch {
	case len(found) > 0:
		return strings.Join(found, ", ")
	case !v.Whole():
		return "nothing is wrong in what could be verified"
	}
	return "nothing is lost, doubled, altered, invented or reordered"
}

var details = map[Rule]map[Kind]string{
	"V1": {
		Lost:    "the outbox has it as published, and the topic does not hold it",
		Altered: "a record of it is not what the outbox has",
	},
	"V2": {Ghost: "the topic holds it as this service's, and the outbox does not know it"},
	"V3": {
		Gap:       "the outbox has the versions around it, and not this one",
		Reordered: "it lies behind a later version of its key",
		Misplaced: "a record of it lies in another partition than its key belongs to",
	},
	"V4": {
		Lost:    "the group has committed its offset, it is not stale, and neither inbox nor dead letters have it",
		Altered: "the inbox has it with another payload, and no dead letter has this one",
	},
	"V5": {
		Twice: "it has two rows",
		Ghost: "the inbox says where its record lies, and there is none",
	},
	"V6": {Reordered: "the version that the key has reached contradicts its versions on the topic"},
}
