package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Kind says what is wrong.
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
	Broken    Kind = "broken"    // a registered check says so
)

// Kinds are all of them.
var Kinds = []Kind{Lost, Ghost, Altered, Twice, Gap, Reordered, Misplaced, Broken}

// Rule is V1 to V7, or the name of a registered check.
type Rule string

// Finding is one thing that is wrong. It names events and keys, and nothing that people wrote.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Rule    Rule   `json:"rule"`
	Subject string `json:"subject"` // the topic, the consumer or the check
	EventID string `json:"event_id,omitempty"`
	Key     string `json:"key,omitempty"`
	Version int64  `json:"version,omitempty"`
	Detail  string `json:"detail"`
}

// Reason is why something could not be verified.
type Reason string

// The reasons.
const (
	TopicForgot     Reason = "the topic does not hold it any more"
	OutboxForgot    Reason = "the outbox has dropped its table partition"
	InboxForgot     Reason = "the inbox remembers no event of that time"
	FewerPartitions Reason = "its topic may have had fewer partitions when it was published"
	OtherTopic      Reason = "the topic was created anew since"
	NoTopic         Reason = "the service does not write to that topic any more"
	Open            Reason = "it lies behind a transaction of another producer that is still open"
	NotLookedAt     Reason = "suspects beyond the first thousand were not looked at again"
)

// Unverifiable is how much could not be verified for a reason, in events or in the subject's own unit.
type Unverifiable struct {
	Subject string `json:"subject"`
	Reason  Reason `json:"reason"`
	Events  int64  `json:"events"`
}

// Produced is what was counted of one topic of the service.
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

// Consumed is what was counted of one consumer.
type Consumed struct {
	Consumer string `json:"consumer"`
	Topic    string `json:"topic"`
	Handled  int64  `json:"handled"` // records below the committed offsets that have a row or dead letter, or are stale
	Again    int64  `json:"again"`   // of these, records that repeat one
	Ignored  int64  `json:"ignored"` // records of types without a handler
	Pending  int64  `json:"pending"` // records above the committed offsets
	Dead     int64  `json:"dead"`    // dead letters that wait
}

// Verdict is what one verification found, as of a moment.
type Verdict struct {
	At           time.Time      `json:"at"`              // when it was begun
	Since        *time.Time     `json:"since,omitempty"` // events before it were not judged
	Produced     []Produced     `json:"produced"`
	Consumed     []Consumed     `json:"consumed"`
	Checks       []string       `json:"checks"` // that were run
	Findings     []Finding      `json:"findings"`
	Unverifiable []Unverifiable `json:"unverifiable"`
}

// Clean says that nothing is wrong, as far as could be seen.
func (v *Verdict) Clean() bool { return len(v.Findings) == 0 }

// Whole says that everything could be verified.
func (v *Verdict) Whole() bool { return len(v.Unverifiable) == 0 }

// suspect is what may become a finding. What a registered check reports is known; another one names its event and its
// key by their hashes.
type suspect struct {
	Finding
	id, key uint64 // 0: of none
}

// details put findings into words.
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
	"V7": {
		Lost:      "the key waits for a dead letter of this version, and there is none",
		Reordered: "a dead letter of this version holds the key, and the key does not park what comes after it",
	},
}

// A Projection is a table that a consumer makes of its events, with a row for each key. The row's version moves with
// the version in inbox_key, in one transaction, so they are equal. A discarded dead letter moves only the latter.
type Projection struct {
	Table, Key string // the table and its column with the key; the other is "version"
	Consumer   string
}

const selectOddVersions = `
select coalesce(w.key, p.%[2]s::text), coalesce(w.version, 0), coalesce(p.version, 0)
from (select key, version from public.inbox_key where consumer = $1 and version > 0) w
full join %[1]s p on p.%[2]s::text = w.key
where p.version is distinct from w.version
    and not exists (select from public.dead_letter d where d.consumer = $1 and d.state = 'discarded'
        and d.key_start = convert_to(coalesce(w.key, p.%[2]s::text), 'UTF8'))
limit 1000`

// Compare is for a [Check]: it finds rows that are not at the version up to which their events were applied.
func (p Projection) Compare(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	rows, _ := tx.Query(ctx, fmt.Sprintf(selectOddVersions, p.Table, p.Key), p.Consumer)
	var key string
	var applied, version int64
	_, err = pgx.ForEachRow(rows, []any{&key, &applied, &version}, func() error {
		found = append(found, Finding{
			Key: key, Version: version,
			Detail: fmt.Sprintf("the row in %s is at version %d, its events at %d", p.Table, version, applied),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare versions in %s: %w", p.Table, err)
	}
	return found, nil
}
