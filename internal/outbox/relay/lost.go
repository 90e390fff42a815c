package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Losses are the events that this database or the log lost, as a leader found them.
type Losses struct {
	Refused        *Refusal   `json:"refused,omitempty"`          // nil: the relay publishes
	DatabaseBackAt *time.Time `json:"database_back_at,omitempty"` // as a leader last found it
	BrokerBackAt   *time.Time `json:"broker_back_at,omitempty"`   // likewise
	// Healing counts the topic-partitions whose events are being published again.
	Healing int64 `json:"healing"`
	Lost    int64 `json:"lost"` // counted up to MaxLost

	// While it is healed, and for an hour after the loss was found, by the database's clock.
	DatabaseWentBack bool `json:"-"`
	BrokerWentBack   bool `json:"-"`
}

// The codes of refusals.
const (
	RefusedUnplaceable     = "log_unplaceable"  // the log lost too much, or the topic was created anew
	RefusedVersionsMissing = "versions_missing" // a version is neither in the database nor on the log
	RefusedEventsUnknown   = "events_unknown"   // a restore, or a copy of the database
	RefusedRecordsExpired  = "records_expired"  // before they were compared with the rows
)

// Refusal is why a relay publishes nothing until an operator confirms it.
type Refusal struct {
	Code      string `json:"code"`
	Text      string `json:"text"`
	Confirmed bool   `json:"confirmed"`
}

const lossColumns = `case when c.refused is not null
        then jsonb_build_object('code', split_part(c.refused, ':', 1),
            'text', ltrim(substr(c.refused, strpos(c.refused, ':') + 1)),
            'confirmed', c.confirmed is not distinct from c.refused) end,
    c.database_back_at, c.broker_back_at,
    h.healing, (select count(*) from (select from public.outbox_lost limit $2) x),
    coalesce(c.database_back_at > clock_timestamp() - interval '1 hour'
        or h.healing > 0 and c.database_back_at >= coalesce(c.broker_back_at, '-infinity'), false),
    coalesce(c.broker_back_at > clock_timestamp() - interval '1 hour'
        or h.healing > 0 and c.broker_back_at >= coalesce(c.database_back_at, '-infinity'), false)`

const countHealing = `
(select count(*) as healing from jsonb_each(c.ends) as partition (name, ends) where ends ? 'from')`

var (
	// ErrNotRefused means that the relay refuses nothing.
	ErrNotRefused = errors.New("the relay refuses nothing")
	// ErrOtherRefusal means that the refusal has another code.
	ErrOtherRefusal = errors.New("the relay refuses for another reason")
)

const confirmSQL = `
update public.outbox_cursor set confirmed = case when split_part(refused, ':', 1) = $1 then refused else confirmed end
returning coalesce(refused, ''), coalesce(split_part(refused, ':', 1) = $1, false)`

// Confirm ends the refusal with the code when tx commits, and returns its text. The leader publishes again within
// seconds, or refuses anew for a new reason.
func Confirm(ctx context.Context, tx pgx.Tx, code string) (text string, err error) {
	var isSame bool
	if err := tx.QueryRow(ctx, confirmSQL, code).Scan(&text, &isSame); err != nil {
		return "", fmt.Errorf("confirm refusal: %w", err)
	}
	switch {
	case text == "":
		return "", ErrNotRefused
	case !isSame:
		return "", ErrOtherRefusal
	}
	return text, nil
}

// LostEvent is an event that is on the log and that this database lost.
type LostEvent struct {
	Topic      string          `json:"topic"`
	Partition  int32           `json:"partition"`
	Offset     int64           `json:"offset"`
	EventID    string          `json:"event_id"`
	Type       string          `json:"type"`
	Key        string          `json:"key"`
	Version    int64           `json:"version"`
	AppendedAt time.Time       `json:"appended_at"` // by the broker's clock
	FoundAt    time.Time       `json:"found_at"`    // by the database's clock
	Headers    json.RawMessage `json:"headers"`
	Bytes      int             `json:"bytes"`
	Payload    []byte          `json:"payload,omitzero"`
}

// LostQuery selects lost events. Empty fields select all.
type LostQuery struct {
	Topic, Key string
	After      string // the Next of the page before
	Limit      int    // below 1 counts as 1
	Payload    bool   // a page ends after 8 MiB of payloads
}

// LostPage is a part of the lost events, in the order of the log.
type LostPage struct {
	Items []LostEvent `json:"items"`
	Next  string      `json:"next,omitempty"` // empty: there is no next page
}

const lostSQL = `
select topic, partition, "offset", event_id, event_type, key, version, appended_at, found_at, headers, length(payload),
    case when $8 then payload end
from (
    select l.*, sum(case when $8 then length(payload) else 0 end) over place - length(payload) as before
    from (
        select * from public.outbox_lost
        where ($1 = '' or topic = $1) and ($2 = '' or key = $2)
            and (topic, partition, "offset", version, event_id) > ($3, $4, $5, $6, $7)
        order by topic, partition, "offset", version, event_id
        limit $9
    ) l
    window place as (order by topic, partition, "offset", version, event_id)
) x
where before < $10
order by topic, partition, "offset", version, event_id`

const maxLostBytes = 8 << 20

// ReadLost returns a page of the lost events. A malformed After is [ErrAfter].
func ReadLost(ctx context.Context, db DB, q LostQuery) (page LostPage, err error) {
	after, err := parsePlace(q.After)
	if err != nil {
		return page, err
	}
	limit := max(1, q.Limit)
	rows, _ := db.Query(ctx, lostSQL, q.Topic, q.Key, after.Topic, after.Partition, after.Offset, after.Version,
		after.EventID, q.Payload, limit+1, maxLostBytes)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[LostEvent])
	if err != nil {
		return page, fmt.Errorf("list lost events: %w", err)
	}
	page.Items = found[:min(len(found), limit)]
	payloads := 0
	for _, e := range page.Items {
		payloads += len(e.Payload)
	}
	if len(found) > limit || payloads >= maxLostBytes {
		page.Next = page.Items[len(page.Items)-1].place()
	}
	return page, nil
}

func (e LostEvent) place() string {
	return fmt.Sprintf("%s/%d/%d/%d/%s", e.Topic, e.Partition, e.Offset, e.Version, e.EventID)
}

// ErrAfter means that [LostQuery.After] is not a [LostPage.Next].
var ErrAfter = errors.New("after is malformed")

func parsePlace(text string) (e LostEvent, err error) {
	if text == "" {
		return e, nil
	}
	parts := strings.SplitN(text, "/", 5) // an id may have a slash
	if len(parts) < 5 {
		return e, ErrAfter
	}
	e.Topic, e.EventID = parts[0], parts[4]
	if _, err := fmt.Sscan(strings.Join(parts[1:4], " "), &e.Partition, &e.Offset, &e.Version); err != nil {
		return e, ErrAfter
	}
	return e, nil
}
