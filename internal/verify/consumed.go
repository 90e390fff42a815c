package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"slices"
	"time"
	"unique"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

type consumed struct {
	half
	Consumer
	counts  *Consumed
	from    int64                 // the inbox remembers events from then on
	letters map[uint64]bool       // of dead letters; see letterOf
	keys    map[string]*keyInTurn // of this pass
	missing []fact                // records of all passes that have neither row nor dead letter and may be stale
}

type keyInTurn struct {
	version     int64
	first, last int64
	applied     fact // the record with the highest version that the inbox must have applied
}

func newConsumed(l *look, of Consumer, counts *Consumed) *consumed {
	counts.Consumer, counts.Topic = of.Name, of.Topic
	return &consumed{Consumer: of, counts: counts, half: half{
		look: l, subject: of.Name, topic: of.Topic, group: of.Group,
		countRows: `select count(*) from public.inbox where consumer = $1`,
	}}
}

// The order is fixed: offsets before the inbox, the topic last (see the package comment).
func (c *consumed) compare(ctx context.Context) error {
	err := c.eachPass(ctx, c.readOffsets, c.readInbox, c.readLetters, c.readKeys, c.readHorizon, c.readTopic,
		func(context.Context) error {
			group(c.facts, byID, c.judgeEvent)
			c.judgeVersions()
			return nil
		})
	if err == nil {
		err = c.judgeMissing(ctx)
	}
	if err == nil {
		err = c.query(ctx, "V7", c.Name, selectOddlyParked, c.Name)
	}
	return err
}

const selectPoints = `select partition, next_offset from public.inbox_point where consumer = $1 and topic = $2`

// readOffsets uses the position in the consumer's database for a topic-partition without a committed offset.
func (c *consumed) readOffsets(ctx context.Context) error {
	points := map[int]int64{}
	var partition int
	var next int64
	rows, _ := c.db.Query(ctx, selectPoints, c.Name, c.topic)
	_, err := pgx.ForEachRow(rows, []any{&partition, &next}, func() error {
		points[partition] = next
		return nil
	})
	if err != nil {
		return fmt.Errorf("read points: %w", err)
	}
	err = c.begin(ctx)
	for i := range c.parts {
		if p := &c.parts[i]; p.committed < 0 && points[i] <= p.end {
			p.committed = points[i]
		}
	}
	return err
}

// The pages follow the ids: a row that is added during the read belongs to a record above the committed offset.
const selectRemembered = `
select event_id, event_time, event_type, substring(payload_hash from 1 for 8), coalesce(metadata->>'topic', ''),
    coalesce((metadata->>'partition')::int, -1), coalesce((metadata->>'offset')::bigint, -1), processed_at
from public.inbox
where consumer = $1 and (event_id, event_time) > ($2, $3)
order by event_id, event_time limit $4`

func (c *consumed) readInbox(ctx context.Context) error {
	var id, eventType, topic string
	var eventTime, processed time.Time
	var hash []byte
	var at place
	args := func() []any { return []any{c.Name, id, eventTime} }
	scan := []any{&id, &eventTime, &eventType, &hash, &topic, &at.part, &at.offset, &processed}
	return c.readPages(ctx, "inbox", selectRemembered, args, scan, func() error {
		c.step()
		r := fact{
			id: id, eventType: unique.Make(eventType).Value(), content: shortHash(hash), at: processed.Unix(), place: at,
		}
		if topic != c.topic { // perhaps of a partition that is gone
			r.part = -1
		}
		if c.takes(id) {
			c.facts = append(c.facts, r)
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

// readLetters reads every state: no dead letter is ever deleted.
func (c *consumed) readLetters(ctx context.Context) error {
	var after int64
	var id, topic string
	var hash, key []byte
	var at place
	var isEdited, waits bool
	c.letters, c.counts.Dead = map[uint64]bool{}, 0
	args := func() []any { return []any{c.Name, after} }
	scan := []any{&after, &id, &hash, &topic, &at.part, &at.offset, &isEdited, &key, &waits}
	return c.readPages(ctx, "dead letters", selectLetters, args, scan, func() error {
		if waits {
			c.counts.Dead++
		}
		c.letters[letterOf(id)], c.letters[letterOf(content{id, shortHash(hash)})] = true, true
		if topic == c.topic {
			c.letters[letterOf(at)] = true
		}
		if isEdited { // its version may have changed
			c.letters[letterOf(editedKey{string(key)})] = true
		}
		return nil
	})
}

type (
	// content is an id with its payload.
	content struct {
		id   string
		hash uint64
	}
	editedKey struct{ key string }
)

func letterOf(about any) uint64 { return maphash.Comparable(seed, about) }

const selectKeys = `
select key, version from public.inbox_key where consumer = $1 and key > $2 and version > 0 order by key limit $3`

// The versions are read after the inbox: a row and its key's version are one transaction, so no row is above it.
func (c *consumed) readKeys(ctx context.Context) error {
	c.keys = map[string]*keyInTurn{}
	if !c.Versioned {
		return nil
	}
	var key string
	var version int64
	args := func() []any { return []any{c.Name, key} }
	return c.readPages(ctx, "keys", selectKeys, args, []any{&key, &version}, func() error {
		if c.takes(key) {
			c.keys[key] = &keyInTurn{version: version}
		}
		return nil
	})
}

// The horizon is read after the inbox: it moves before the inbox deletes a row.
func (c *consumed) readHorizon(ctx context.Context) error {
	var from time.Time
	if err := c.db.QueryRow(ctx, `select remembers_from from public.inbox_horizon`).Scan(&from); err != nil {
		return fmt.Errorf("read inbox horizon: %w", err)
	}
	c.from = from.Unix()
	return nil
}

// Each record is counted, and its version compared, as it passes.
func (c *consumed) readTopic(ctx context.Context) error {
	return c.readRecords(ctx, func(m *message.Message, o event.Origin) {
		r := c.factOf(m, o)
		c.follow(r)
		switch {
		case c.pass > 0:
		case !c.isCommitted(r):
			c.counts.Pending++
		case !r.isHandled:
			c.counts.Ignored++
		}
		if c.takes(r.id) {
			c.facts = append(c.facts, r)
		}
	})
}

func (c *consumed) factOf(m *message.Message, o event.Origin) fact {
	e, err := event.FromMessage(m)
	payload := sha256.Sum256(m.Payload)
	return fact{
		side: record, id: idOf(e, o), key: e.Key, eventType: unique.Make(e.Type).Value(), content: shortHash(payload[:]),
		version: e.Version, place: place{o.Offset, o.Partition}, at: addedAt(e.ID, o.Time),
		isHandled: err != nil || slices.Contains(c.Types, e.Type), isOld: err == nil && c.isOld(e.Time),
	}
}

func (c *consumed) isCommitted(r fact) bool { return r.offset < c.parts[r.part].committed }

// judgeEvent is V4 and the inbox's half of V5.
func (c *consumed) judgeEvent(rows, records []fact) {
	for i, r := range records {
		if r.isHandled && !r.isOld && c.isCommitted(r) && c.isKnown(r, rows) {
			c.counts.Handled++
			c.counts.Again += int64(min(i, 1))
		}
	}
	if len(rows) > 1 {
		c.suspect("V5", Twice, rows[0])
	}
	if len(rows) > 0 && len(records) == 0 {
		c.judgeGhost(rows[0])
	}
}

// isKnown judges a record below the committed offset.
func (c *consumed) isKnown(r fact, rows []fact) bool {
	switch {
	case len(rows) > 0 && (rows[0].content == r.content || c.OnlyWarns),
		c.letters[letterOf(r.place)], c.letters[letterOf(content{r.id, r.content})]:
		return true
	case len(rows) > 0:
		c.suspect("V4", Altered, r)
	case r.at < c.from:
		c.cannot("V4", Lost, r, InboxForgot)
	case c.Versioned && r.version > 0:
		c.missing = append(c.missing, r)
	default:
		c.suspect("V4", Lost, r)
	}
	return false
}

// A dead letter may have had a different id until it was edited.
func (c *consumed) judgeGhost(r fact) {
	if r.part < 0 || c.isOld(time.Unix(r.at, 0)) || c.letters[letterOf(r.place)] {
		return
	}
	if int(r.part) >= len(c.parts) { // the topic is gone, or was created anew with fewer
		c.cannot("V5", Ghost, r, TopicForgot)
		return
	}
	switch p := c.parts[r.part]; {
	case r.offset >= p.end && p.isOpen:
		c.cannot("V5", Ghost, r, Open)
	case r.offset < p.oldest || r.at < p.firstAt:
		c.cannot("V5", Ghost, r, TopicForgot)
	case r.offset >= p.from:
		c.suspect("V5", Ghost, r)
	}
}

// A record among the dead letters, or whose id belongs to a different event, has not moved the version of its key.
func (c *consumed) follow(r fact) {
	if !c.Versioned || r.version == 0 || !c.takes(r.key) {
		return
	}
	k := c.keys[r.key]
	if k == nil {
		k = &keyInTurn{}
		c.keys[r.key] = k
	}
	k.first, k.last = min(cmp.Or(k.first, r.version), r.version), max(k.last, r.version)
	if r.version > k.applied.version && r.isHandled && !r.isOld && c.isCommitted(r) &&
		!c.letters[letterOf(r.place)] && !c.letters[letterOf(r.id)] {
		k.applied = r
	}
}

// judgeVersions is V6. It compares with the highest version of the topic only for keys whose first version is there:
// retention may have removed the highest one, or the log was made anew.
func (c *consumed) judgeVersions() {
	isWhole := !slices.ContainsFunc(c.parts, func(p part) bool { return p.isCut() || p.isOpen })
	for key, k := range c.keys {
		switch {
		case c.letters[letterOf(editedKey{key})]:
		case k.applied.version > k.version:
			c.suspect("V6", Reordered, k.applied)
		case isWhole && k.first == 1 && k.version > k.last:
			c.suspect("V6", Reordered, fact{key: key, version: k.version})
		}
	}
}

// judgeMissing is V4 of an ordered consumer's records without row and dead letter: they are stale or lost. A stale one
// has a different event of its key before it, with the same or a higher version. It reads the topic again for their
// keys.
func (c *consumed) judgeMissing(ctx context.Context) error {
	if len(c.missing) == 0 {
		return nil
	}
	ofKey := map[string][]fact{}
	for _, r := range c.missing {
		ofKey[r.key] = nil
	}
	for i := range c.parts {
		c.parts[i].from = c.parts[i].oldest
	}
	err := c.readRecords(ctx, func(m *message.Message, o event.Origin) {
		r := c.factOf(m, o)
		if records, isWanted := ofKey[r.key]; isWanted && c.isCommitted(r) {
			ofKey[r.key] = append(records, r)
		}
	})
	if err != nil {
		return err
	}
	for _, r := range c.missing {
		isStale, isFirst := false, true
		for _, e := range ofKey[r.key] { // the order of two topic-partitions is not known
			isBefore := e.part == r.part && e.offset < r.offset
			isStale = isStale || e.id != r.id && e.version >= r.version && (isBefore || e.part != r.part)
			isFirst = isFirst && !isBefore
		}
		switch {
		case isStale:
			c.counts.Handled++
		case isFirst && c.parts[r.part].isCut(): // the record that made it stale may have been there
			c.cannot("V4", Lost, r, TopicForgot)
		default:
			c.suspect("V4", Lost, r)
		}
	}
	return nil
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
