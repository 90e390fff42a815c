package verify

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/outbox/relay"
)

// DB is a pool. What is read is read a page at a time, each in a statement of its own: no transaction stays open that
// would keep a table partition from being dropped.
type DB interface {
	relay.DB
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// ErrStandby means that the database is a standby: it may be behind what it has published.
var ErrStandby = errors.New("verify: the database is a standby; ask the primary")

const selectStanding = `
select pg_is_in_recovery(), coalesce(max(position), 0) - coalesce(min(position), 0) from public.outbox`

// readStanding returns about how many rows the outbox has, or [ErrStandby].
func readStanding(ctx context.Context, db DB) (rows int64, err error) {
	var standby bool
	err = db.QueryRow(ctx, selectStanding).Scan(&standby, &rows)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read outbox: %w", err)
	case standby:
		return 0, ErrStandby
	}
	return rows, nil
}

// pageRows is how many rows are read by one statement.
const pageRows = 5000

// pages reads all rows that a statement selects, a page at a time, and calls each for every one of them. The last of
// its arguments is the size of a page; the others are asked for anew for each, as they say behind which row it begins.
func pages(ctx context.Context, db DB, what, sql string, args func() []any, scan []any, each func() error) error {
	for n := pageRows; n == pageRows; {
		n = 0
		rows, _ := db.Query(ctx, sql, append(args(), pageRows)...)
		_, err := pgx.ForEachRow(rows, scan, func() error {
			n++
			return each()
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
	}
	return nil
}

// Log is what is asked of the broker.
type Log interface {
	// Ends returns of each partition of a topic, in their order, the first offset and the one behind the last record; none
	// of a topic that does not exist.
	Ends(ctx context.Context, topic string) (oldest, newest []int64, err error)
	// Since returns of each partition the first offset whose record was written at that time or later.
	Since(ctx context.Context, topic string, at time.Time) ([]int64, error)
	// Committed returns what a group has committed of each partition, -1 where there is nothing.
	Committed(ctx context.Context, group, topic string) (offsets []int64, err error)
	// Scan calls each for the records of a partition that a consumer would get, with their [event.Origin]. It returns
	// the offset behind the last one: less than to where an open transaction lies before it.
	Scan(ctx context.Context, topic string, partition int32, from, to int64, each func(*message.Message)) (int64, error)
	// Place is the partition of a key in a topic with so many of them.
	Place(topic, key string, partitions int32) (int32, error)
}

// ErrPartitions means that a topic was given more partitions, or created anew, while it was read.
var ErrPartitions = errors.New("verify: the topic's partitions changed meanwhile; ask again")

// part is a topic-partition: what of its log was read, and what that log no longer holds.
type part struct {
	oldest    int64 // the first offset that the log has
	from      int64 // the first one that was read
	cut       bool  // records lay before it
	firstAt   int64 // when the first record was written; without one: never
	ghosts    int64 // records below it must have rows: the end before the rows were read
	end       int64 // records were read up to here
	open      bool  // or less far: an open transaction lies before the end
	committed int64 // of a consumer: records below it must be in the inbox
	other     bool  // of a consumer: its offset is one of a topic that was deleted since
}

// partsOf are the partitions of a topic as they are when nothing of them is read yet. An hour before since is read,
// too: what is judged may be a repetition of what lies a little before it.
func (l *look) partsOf(ctx context.Context, topic string) ([]part, error) {
	oldest, newest, err := l.cfg.Log.Ends(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("ask for the ends of %s: %w", topic, err)
	}
	var from []int64
	if l.cfg.Since != nil && len(oldest) > 0 {
		if from, err = l.cfg.Log.Since(ctx, topic, l.cfg.Since.Add(-time.Hour)); err != nil {
			return nil, fmt.Errorf("ask for offsets of %s: %w", topic, err)
		}
	}
	parts := make([]part, len(oldest))
	for i := range parts {
		parts[i] = part{oldest: oldest[i], from: oldest[i], ghosts: newest[i], end: newest[i], firstAt: never}
		if i < len(from) {
			parts[i].from = max(parts[i].from, from[i])
		}
	}
	return parts, nil
}

// readParts reads the partitions of a topic up to their present ends.
func (l *look) readParts(
	ctx context.Context, topic string, parts []part, each func(m *message.Message, o event.Origin),
) error {
	_, ends, err := l.endsAgain(ctx, topic, parts)
	if err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		next, err := l.cfg.Log.Scan(ctx, topic, int32(i), p.from, ends[i], func(m *message.Message) {
			l.step()
			origin, _ := event.OriginFrom(m.Context())
			if p.firstAt == never {
				p.firstAt = origin.Time.Unix()
			}
			each(m, origin)
		})
		if err != nil {
			return fmt.Errorf("read %s/%d: %w", topic, i, err)
		}
		p.end, p.open = next, next < ends[i]
	}
	// Last, so that what was deleted meanwhile counts as deleted.
	oldest, _, err := l.endsAgain(ctx, topic, parts)
	for i := range oldest {
		parts[i].oldest, parts[i].cut = oldest[i], max(parts[i].from, oldest[i]) > 0
	}
	return err
}

func (l *look) endsAgain(ctx context.Context, topic string, parts []part) (oldest, newest []int64, err error) {
	oldest, newest, err = l.cfg.Log.Ends(ctx, topic)
	if err == nil && len(newest) != len(parts) {
		err = ErrPartitions
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask for the ends of %s: %w", topic, err)
	}
	return oldest, newest, nil
}

// idOf is the id of an event, or of a record that has none where it lies.
func idOf(e event.Event, o event.Origin) string {
	if event.ValidID(e.ID) != nil {
		return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)
	}
	return e.ID
}

// place is where a record lies.
type place struct {
	offset int64
	part   int32 // of the outbox: where its key belongs. -1: it does not say, or anywhere
}

// nowhere is the place of a row that names no partition.
var nowhere = place{0, -1}

// fact is what one side says of an event: a row of the outbox, a record of a topic, or a row of the inbox.
type fact struct {
	id, content, key uint64 // hashes: of topic and event id, of what must not change, of topic and key
	version          int64
	at               int64 // the earliest time that anything says, in Unix seconds; of the inbox: when it was processed
	place                  // of the record; of the inbox: of the record that it was

	// Of the outbox.
	state byte // the first letter of its [relay.State]

	// Of a record.
	ours    bool // it says that this service wrote it
	again   bool // an earlier record has its id
	handled bool // the consumer has a handler for its type, or cannot know the type
	old     bool // from before what is to be judged
	moved   bool // it lies where its key belonged if the topic had fewer partitions

	// Of the inbox.
	conflict bool // a record with its id and another payload was only warned of: a row of the first edition
}

func byID(a, b fact) int {
	return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part), cmp.Compare(a.offset, b.offset))
}

func byVersion(a, b fact) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.version, b.version))
}

func byPlace(a, b fact) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.part, b.part), cmp.Compare(a.offset, b.offset))
}

// pairs sorts two sides by their ids, and has judged what each of them says of one id.
func pairs(here, there []fact, judge func(these, those []fact)) {
	slices.SortFunc(here, byID)
	slices.SortFunc(there, byID)
	for len(here)+len(there) > 0 {
		id := uint64(math.MaxUint64)
		for _, side := range [][]fact{here, there} {
			if len(side) > 0 {
				id = min(id, side[0].id)
			}
		}
		these, those := countOf(here, id), countOf(there, id)
		judge(here[:these], there[:those])
		here, there = here[these:], there[those:]
	}
}

// countOf is how many facts a sorted side begins with that have an id.
func countOf(facts []fact, id uint64) (n int) {
	for n < len(facts) && facts[n].id == id {
		n++
	}
	return n
}

// seed makes the hashes of one process comparable, and keeps a writer from choosing two alike.
var seed = maphash.MakeSeed()

// hashOf keeps "ab", "c" and "a", "bc" apart.
func hashOf(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, p := range parts {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		_, _ = h.Write(length[:])
		_, _ = h.WriteString(p)
	}
	return h.Sum64()
}

// contentOf is what must be the same in the row and in each record of an event: everything but its trace headers.
func contentOf(e event.Event) uint64 {
	parts := []string{
		e.ID, e.Source, e.Type, e.Key, e.DataSchema, strconv.FormatInt(e.Version, 10),
		strconv.FormatInt(e.Time.UnixNano(), 10), string(e.Data),
	}
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if name != event.HeaderTraceParent && name != event.HeaderTraceState {
			parts = append(parts, name, e.Extensions[name])
		}
	}
	return hashOf(parts...)
}

// shortHash is the beginning of the hash of a payload that an inbox keeps.
func shortHash(hash []byte) uint64 {
	if len(hash) < 8 { // of an id that was marked without its event
		return 0
	}
	return binary.BigEndian.Uint64(hash)
}

// never is later than any record.
const never = math.MaxInt64 / 2

// earliest is the earliest of the times, and of the one inside the id if it is a UUIDv7: a business time is what a
// caller says, and may lie in the future.
func earliest(id string, times ...time.Time) int64 {
	at := int64(never)
	for _, t := range times {
		if !t.IsZero() {
			at = min(at, t.Unix())
		}
	}
	if u, err := uuid.Parse(id); err == nil && u.Version() == 7 {
		seconds, _ := u.Time().UnixTime()
		at = min(at, seconds)
	}
	return at
}

// clocks is how far the clocks of two machines may be apart where a time decides between forgotten and lost.
const clocks = 300 // seconds
