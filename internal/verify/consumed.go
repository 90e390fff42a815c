package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
)

// consumed is what is known when a consumer's topic is compared with its inbox.
type consumed struct {
	comparison
	Consumer
	counts    *Consumed
	records   []fact
	rows      []fact
	since     int64              // what was processed before is not judged
	from      int64              // the inbox remembers events from then on
	letters   map[place]bool     // where records lie that have a dead letter
	lettered  map[[2]uint64]bool // id and payload hash of those
	ids       map[uint64]bool    // ids of those
	conflicts map[uint64]bool    // ids of which a record with another payload was only warned of
	edited    map[uint64]bool    // keys of which a dead letter was edited: its version may be another one since
	marks     map[uint64]mark    // of some keys
	missing   *[]fact            // records of all passes that have neither row nor dead letter
}

// mark is the version that a key has reached, and the lowest and the highest of its versions on the topic.
type mark struct{ version, from, to int64 }

// lookAtConsumed compares a consumer's topic with its inbox.
func (l *look) lookAtConsumed(ctx context.Context, of Consumer) error {
	oldest, newest, err := l.cfg.Log.Ends(ctx, of.Topic)
	if err != nil {
		return fmt.Errorf("ask for the ends of %s: %w", of.Topic, err)
	}
	var size int64
	for i := range newest {
		size += newest[i] - oldest[i]
	}
	counts := Consumed{Consumer: of.Name, Topic: of.Topic}
	var c *consumed
	var missing []fact
	err = l.passes(size, func() error {
		c = &consumed{
			comparison: comparison{look: l, subject: of.Name}, Consumer: of, counts: &counts, letters: map[place]bool{},
			lettered: map[[2]uint64]bool{}, ids: map[uint64]bool{}, conflicts: map[uint64]bool{}, edited: map[uint64]bool{},
			marks: map[uint64]mark{}, missing: &missing,
		}
		if l.cfg.Since != nil {
			c.since = l.cfg.Since.Unix()
		}
		return c.pass(ctx)
	})
	if err == nil {
		err = c.judgeMissing(ctx)
	}
	if err == nil {
		err = c.judgeParked(ctx)
	}
	l.verdict.Consumed = append(l.verdict.Consumed, counts)
	return err
}

// pass reads the two sides, in this order, and compares them.
func (c *consumed) pass(ctx context.Context) error {
	for _, read := range []func(context.Context) error{
		c.readCommitted, c.readInbox, c.readLetters, c.readMarks, c.readHorizon, c.readTopic,
	} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	c.compare()
	c.ahead()
	return nil
}

// readCommitted reads the committed offsets, and only then the ends: an offset beyond them is not this topic's.
func (c *consumed) readCommitted(ctx context.Context) error {
	committed, err := c.cfg.Log.Committed(ctx, c.Group, c.Topic)
	if err != nil {
		return fmt.Errorf("ask for offsets of %s: %w", c.Group, err)
	}
	if c.parts, err = c.partsOf(ctx, c.Topic); err != nil {
		return err
	}
	for i := range c.parts {
		p := &c.parts[i]
		if i < len(committed) {
			p.committed, p.other = max(committed[i], 0), committed[i] > p.end
		}
		if p.other {
			p.committed = 0
			if c.this == 0 {
				c.look.cannot(c.Name, OtherTopic, p.end-p.from)
			}
		}
	}
	return nil
}

// The pages follow the ids: a row that comes while they are read belongs to a record above the committed offset.
const selectRemembered = `
select event_id, event_time, substring(payload_hash from 1 for 8), metadata ? 'conflict',
    coalesce(metadata->>'topic', ''), coalesce((metadata->>'partition')::int, -1),
    coalesce((metadata->>'offset')::bigint, -1), processed_at
from public.inbox
where consumer = $1 and (event_id, event_time) > ($2, $3)
order by event_id, event_time limit $4`

// readInbox reads the rows of the consumer.
func (c *consumed) readInbox(ctx context.Context) error {
	var id, topic string
	var eventTime, processed time.Time
	var hash []byte
	var f fact
	args := func() []any { return []any{c.Name, id, eventTime} }
	scan := []any{&id, &eventTime, &hash, &f.conflict, &topic, &f.part, &f.offset, &processed}
	return pages(ctx, c.cfg.DB, "inbox", selectRemembered, args, scan, func() error {
		c.step()
		r := f
		r.id, r.content, r.at = hashOf(c.Topic, id), shortHash(hash), processed.Unix()
		if topic != c.Topic { // perhaps of a partition that is gone
			r.part = -1
		}
		if r.conflict {
			c.conflicts[r.id] = true
		}
		if c.takes(r.id) {
			c.label(r.id, id)
			c.rows = append(c.rows, r)
		}
		return nil
	})
}

const selectLetters = `
select id, event_id, substring(sha256(payload) from 1 for 8), topic, partition, record_offset, edited_at is not null,
    key, state = 'waiting'
from public.dead_letter
where consumer = $1 and id > $2
order by id limit $3`

// readLetters collects the dead letters of the consumer, in every state: none is ever deleted.
func (c *consumed) readLetters(ctx context.Context) error {
	var after, offset int64
	var id, topic string
	var hash, key []byte
	var partition int32
	var edited, waits bool
	c.counts.Dead = 0 // of this pass: each reads all
	args := func() []any { return []any{c.Name, after} }
	scan := []any{&after, &id, &hash, &topic, &partition, &offset, &edited, &key, &waits}
	return pages(ctx, c.cfg.DB, "dead letters", selectLetters, args, scan, func() error {
		eventID := hashOf(c.Topic, id)
		if waits {
			c.counts.Dead++
		}
		c.ids[eventID] = true
		c.lettered[[2]uint64{eventID, shortHash(hash)}] = true
		if topic == c.Topic {
			c.letters[place{offset, partition}] = true
		}
		if edited {
			c.edited[hashOf(c.Topic, string(key))] = true
		}
		return nil
	})
}

const selectMarks = `
select key, version from public.inbox_key where consumer = $1 and key > $2 and version > 0 order by key limit $3`

// readMarks reads the versions of the keys that are compared, after the inbox: a row and its key's version are one
// transaction, so no row is above it.
func (c *consumed) readMarks(ctx context.Context) error {
	if !c.Versioned {
		return nil
	}
	var key string
	var version int64
	args := func() []any { return []any{c.Name, key} }
	return pages(ctx, c.cfg.DB, "keys", selectMarks, args, []any{&key, &version}, func() error {
		if hash := hashOf(c.Topic, key); c.takes(hash) {
			c.label(hash, key)
			c.marks[hash] = mark{version: version}
		}
		return nil
	})
}

const selectInboxHorizon = `select remembers_from from public.inbox_horizon`

// readHorizon is asked after the inbox: the horizon moves before anything is forgotten.
func (c *consumed) readHorizon(ctx context.Context) error {
	var from time.Time
	if err := c.cfg.DB.QueryRow(ctx, selectInboxHorizon).Scan(&from); err != nil {
		return fmt.Errorf("read inbox horizon: %w", err)
	}
	c.from = from.Unix()
	return nil
}

// recordOf is what is compared of a record.
func (c *consumed) recordOf(m *message.Message, o event.Origin) fact {
	e, err := event.FromMessage(m)
	payload := sha256.Sum256(m.Payload)
	return fact{
		id: hashOf(c.Topic, idOf(e, o)), content: shortHash(payload[:]), key: hashOf(c.Topic, e.Key), version: e.Version,
		place: place{o.Offset, o.Partition}, at: earliest(e.ID, o.Time), handled: err != nil || c.Accepts(e.Type),
		old: err == nil && c.old(e.Time),
	}
}

// readTopic reads the records. Each is compared with its key's version, and counted, as it passes.
func (c *consumed) readTopic(ctx context.Context) error {
	return c.readParts(ctx, c.Topic, c.parts, func(m *message.Message, o event.Origin) {
		r := c.recordOf(m, o)
		c.behind(r)
		switch {
		case c.this > 0:
		case r.offset >= c.parts[r.part].committed:
			c.counts.Pending++
		case !r.handled:
			c.counts.Ignored++
		}
		if c.takes(r.id) {
			c.label(r.id, m.UUID)
			c.records = append(c.records, r)
		}
		c.label(r.key, m.Metadata[event.KeyMetadata])
	})
}

// compare is V4 and the inbox's half of V5.
func (c *consumed) compare() {
	pairs(c.records, c.rows, func(records, rows []fact) {
		for i, r := range records {
			if c.has(r, rows) {
				c.counts.Handled++
				c.counts.Again += int64(min(i, 1))
			}
		}
		if len(rows) > 0 {
			c.remembered(rows, len(records) > 0)
		}
	})
}

// has judges a record below the committed offset, and says whether it has what it must have.
func (c *consumed) has(r fact, rows []fact) bool {
	switch {
	case !r.handled, r.old, r.offset >= c.parts[r.part].committed:
		return false
	case len(rows) > 0 && (rows[0].content == r.content || rows[0].conflict || c.OnlyWarns),
		c.letters[r.place], c.lettered[[2]uint64{r.id, r.content}]:
		return true
	case len(rows) > 0:
		c.suspect("V4", Altered, r)
	case r.at < c.from:
		c.cannot(InboxForgot)
	case c.Versioned && r.version > 0:
		*c.missing = append(*c.missing, r)
	default:
		c.suspect("V4", Lost, r)
	}
	return false
}

// remembered judges the inbox's rows of one id.
func (c *consumed) remembered(rows []fact, onTopic bool) {
	r := rows[0]
	if len(rows) > 1 {
		c.suspect("V5", Twice, r)
	}
	if onTopic || r.part < 0 || r.at < c.since || c.letters[r.place] { // or it was edited and has another id since
		return
	}
	if int(r.part) >= len(c.parts) { // the topic is gone, or was made anew with fewer of them
		c.cannot(TopicForgot)
		return
	}
	switch p := c.parts[r.part]; {
	case p.other:
		c.cannot(OtherTopic)
	case r.offset >= p.end && p.open:
		c.cannot(Open)
	case r.offset < p.oldest || r.at < p.firstAt:
		c.cannot(TopicForgot)
	case r.offset >= p.from:
		c.suspect("V5", Ghost, r)
	}
}

// behind is the half of V6 that each record is asked: the version of its key is not below it. A record that waits
// among the dead letters, or whose id belonged to another event, has not moved it.
func (c *consumed) behind(r fact) {
	if !c.Versioned || r.version == 0 || !c.takes(r.key) {
		return
	}
	mark, known := c.marks[r.key]
	if known {
		mark.from = min(cmp.Or(mark.from, r.version), r.version)
		mark.to = max(mark.to, r.version)
		c.marks[r.key] = mark
	}
	switch {
	case !r.handled || r.old || r.offset >= c.parts[r.part].committed || r.version <= mark.version,
		c.edited[r.key], c.conflicts[r.id], c.letters[r.place], c.ids[r.id]:
		return
	}
	c.suspect("V6", Reordered, r)
}

// ahead is the other half: no key's version is above all of its versions on the topic. It is asked of keys whose first
// version is there: the highest one may be gone where the beginning of the log is, or the log before this one.
func (c *consumed) ahead() {
	if slices.ContainsFunc(c.parts, func(p part) bool { return p.cut || p.open }) {
		return
	}
	for key, mark := range c.marks {
		if mark.from == 1 && mark.version > mark.to && !c.edited[key] {
			c.suspect("V6", Reordered, fact{key: key, version: mark.version})
		}
	}
}
