package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
	"unique"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
)

type consumed struct {
	comparison
	Consumer
	counts  *Consumed
	from    int64  // the inbox remembers events from then on
	keys    []fact // with the version that each has reached
	letters deadLetters
}

type deadLetters struct {
	ids    map[string]bool // of their records
	places map[place]bool  // of edited ones, whose rows may have a different id
	keys   map[string]bool // of edited ones, whose version may be different
}

func (l *look) compareInbox(ctx context.Context, of Consumer, counts *Consumed) error {
	counts.Consumer, counts.Topic = of.Name, of.Topic
	c := &consumed{
		comparison: comparison{look: l, subject: of.Name, topic: of.Topic, group: of.Group}, Consumer: of, counts: counts,
		letters: deadLetters{map[string]bool{}, map[place]bool{}, map[string]bool{}},
	}
	err := inOrder(ctx,
		c.readEnds, c.readPoints, c.readInbox, c.readLetters, c.readKeys, c.readHorizon, c.readTopic)
	if err != nil {
		return err
	}
	group(c.facts, byID, c.judgeEvent)
	records := slices.DeleteFunc(c.facts, func(f fact) bool { return f.side == row })
	group(append(records, c.keys...), byKey, c.judgeKey)
	return c.query(ctx, "V7", c.Name, selectOddlyParked, c.Name)
}

const selectPoints = `select partition, next_offset from public.inbox_point where consumer = $1 and topic = $2`

// readPoints uses the position in the consumer's database for a topic-partition without a committed offset.
func (c *consumed) readPoints(ctx context.Context) error {
	var partition int
	var next int64
	args, scan := []any{c.Name, c.topic}, []any{&partition, &next}
	return c.readRows(ctx, "points", selectPoints, args, scan, func() error {
		if partition < len(c.parts) {
			if p := &c.parts[partition]; p.committed < 0 && next <= p.end {
				p.committed = next
			}
		}
		return nil
	})
}

// A row that is added during the read belongs to a record above the committed offset. A row is younger than its record,
// by a different clock.
const selectRemembered = `
select event_id, event_time, event_type, substring(payload_hash from 1 for 8), coalesce(metadata->>'topic', ''),
    coalesce((metadata->>'partition')::int, -1), coalesce((metadata->>'offset')::bigint, -1), processed_at
from public.inbox
where consumer = $1 and (event_id, event_time) > ($2, $3) and processed_at >= $4
order by event_id, event_time limit $5`

func (c *consumed) readInbox(ctx context.Context) error {
	var id, eventType, topic string
	var eventTime, processed time.Time
	var hash []byte
	var at place
	args := func() []any { return []any{c.Name, id, eventTime, c.Since.Add(-2 * time.Hour)} }
	scan := []any{&id, &eventTime, &eventType, &hash, &topic, &at.part, &at.offset, &processed}
	return c.readPages(ctx, "inbox", selectRemembered, args, scan, func() {
		r := fact{
			id: id, eventType: unique.Make(eventType).Value(), content: shortHash(hash), at: processed.Unix(), place: at,
		}
		if topic != c.topic { // perhaps of a partition that is gone
			r.part = -1
		}
		c.add(r)
	})
}

const selectLetters = `
select event_id, topic, partition, record_offset, edited_at is not null, key, state = 'waiting'
from public.dead_letter where consumer = $1`

func (c *consumed) readLetters(ctx context.Context) error {
	var id, topic string
	var key []byte
	var at place
	var isEdited, waits bool
	scan := []any{&id, &topic, &at.part, &at.offset, &isEdited, &key, &waits}
	return c.readRows(ctx, "dead letters", selectLetters, []any{c.Name}, scan, func() error {
		c.letters.ids[id] = true
		if isEdited && topic == c.topic {
			c.letters.places[at], c.letters.keys[string(key)] = true, true
		}
		if waits {
			c.counts.Dead++
		}
		return nil
	})
}

const selectKeys = `select key, version from public.inbox_key where consumer = $1 and version > 0`

// It runs after the inbox: a row and its key's version are one transaction, so no row is above it.
func (c *consumed) readKeys(ctx context.Context) error {
	if !c.Versioned {
		return nil
	}
	var k fact
	return c.readRows(ctx, "keys", selectKeys, []any{c.Name}, []any{&k.key, &k.version}, func() error {
		if c.wanted == nil || c.wanted[k.key] {
			c.keys = append(c.keys, k)
		}
		return nil
	})
}

// It runs after the inbox: the horizon moves before a row is deleted.
func (c *consumed) readHorizon(ctx context.Context) error {
	var from time.Time
	if err := c.db.QueryRow(ctx, `select remembers_from from public.inbox_horizon`).Scan(&from); err != nil {
		return fmt.Errorf("read inbox horizon: %w", err)
	}
	c.from = from.Unix()
	return nil
}

func (c *consumed) readTopic(ctx context.Context) error {
	return c.readRecords(ctx, func(r fact, e event.Event, m *message.Message, err error) {
		hash := sha256.Sum256(m.Payload)
		r.content, r.isHandled = shortHash(hash[:]), err != nil || slices.Contains(c.Types, e.Type)
		r.isOld = r.isOld && err == nil
		c.add(r)
	})
}

func (c *consumed) isCommitted(r fact) bool { return r.offset < c.parts[r.part].committed }

// judgeEvent is V4 and the inbox's half of V5. A missing record is judged with its key.
func (c *consumed) judgeEvent(rows, records []fact) {
	for i := range records {
		switch r := &records[i]; {
		case !c.isCommitted(*r):
			c.counts.Pending++
		case !r.isHandled:
			c.counts.Ignored++
		case r.isOld:
		case c.letters.ids[r.id], len(rows) > 0 && (rows[0].content == r.content || c.OnlyWarns):
			c.counts.Handled++
			c.counts.Again += int64(min(i, 1))
		case len(rows) > 0:
			c.find("V4", Altered, *r, "")
		default:
			r.isMissing = true
		}
	}
	switch {
	case len(rows) > 1:
		c.find("V5", Twice, rows[0], "")
	case len(rows) > 0 && len(records) == 0:
		c.judgeGhost(rows[0])
	}
}

func (c *consumed) judgeGhost(r fact) {
	if r.part < 0 || c.letters.places[r.place] || time.Unix(r.at, 0).Before(c.Since) {
		return
	}
	if int(r.part) >= len(c.parts) { // the topic is gone, or was created anew with fewer
		c.find("V5", Ghost, r, TopicForgot)
		return
	}
	switch p := c.parts[r.part]; {
	case r.offset < p.oldest || r.at < p.firstAt:
		c.find("V5", Ghost, r, TopicForgot)
	case r.offset >= p.from:
		c.find("V5", Ghost, r, "")
	}
}

// judgeKey is V4 of missing records, and V6.
func (c *consumed) judgeKey(rows, records []fact) {
	for _, r := range records {
		switch {
		case !r.isMissing:
		case c.isStale(r, records):
			c.counts.Handled++
		default:
			c.find("V4", Lost, r, c.whyMissing(r, records))
		}
	}
	if c.Versioned {
		c.judgeVersion(rows, records)
	}
}

// A stale record has another one before it that makes it stale.
func (c *consumed) isStale(r fact, ofKey []fact) bool {
	return slices.ContainsFunc(ofKey, func(other fact) bool {
		return other.part == r.part && other.offset < r.offset && c.canMakeStale(other, r)
	})
}

// canMakeStale reports whether a record, if it came first, makes a different event of its key stale.
func (c *consumed) canMakeStale(other, r fact) bool {
	return c.Versioned && r.version > 0 && other.id != r.id && other.version >= r.version && c.isCommitted(other)
}

func (c *consumed) whyMissing(r fact, ofKey []fact) Reason {
	isBefore := func(other fact) bool { return other.part == r.part && other.offset < r.offset }
	isElsewhere := func(other fact) bool { return other.part != r.part && c.canMakeStale(other, r) }
	switch {
	case r.at < c.from:
		return InboxForgot
	case c.Versioned && r.version > 0 && c.parts[r.part].isCut() && !slices.ContainsFunc(ofKey, isBefore):
		return TopicForgot // the record that made it stale may have been there
	case slices.ContainsFunc(ofKey, isElsewhere):
		return FewerPartitions // which of the two came first is not known
	}
	return ""
}

// judgeVersion is V6.
func (c *consumed) judgeVersion(rows, records []fact) {
	var reached, highest fact
	if len(rows) > 0 {
		reached = rows[0]
	}
	var last int64
	for _, r := range records {
		last = max(last, r.version)
		if r.version > highest.version && c.movesVersion(r) {
			highest = r
		}
	}
	switch {
	case c.letters.keys[cmp.Or(reached.key, highest.key)]:
	case highest.version > reached.version:
		c.find("V6", Reordered, highest, "")
	case reached.version > last && (len(records) > 0 || c.Since.IsZero()):
		c.find("V6", Reordered, reached, c.whyNoVersion(records))
	}
}

// A record among the dead letters has not moved the version of its key.
func (c *consumed) movesVersion(r fact) bool {
	return r.isHandled && !r.isOld && c.isCommitted(r) && !c.letters.ids[r.id]
}

// The log may have lost the highest version of a key, unless it is whole and has the first one: it may be a new log.
func (c *consumed) whyNoVersion(records []fact) Reason {
	if slices.ContainsFunc(c.parts, part.isCut) ||
		!slices.ContainsFunc(records, func(r fact) bool { return r.version == 1 }) {
		return TopicForgot
	}
	return ""
}

// V7. The key of a dead letter that holds it parks later events, and no other key does.
const selectOddlyParked = `
select case when is_gone then 'lost' else 'reordered' end, '', key, case when is_gone then parked_from else version end,
    case when is_gone then 'the key waits for a dead letter of this version, and there is none'
    else 'a dead letter of this version holds the key, and the key does not park what comes after it' end
from (
    select key, k.parked_from, l.version, l.version is null or coalesce(k.parked_from < l.version, false) as is_gone
    from (select key, parked_from from public.inbox_key where consumer = $1 and parked_from is not null) k
    full join (
        select convert_from(key_start, 'UTF8') as key, min(version) as version from public.dead_letter
        where consumer = $1 and state = 'waiting' and holds group by 1
    ) l using (key)
    where k.parked_from is distinct from l.version
) odd
limit 1000`
