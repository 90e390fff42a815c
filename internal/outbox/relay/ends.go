package relay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/failure"
)

// Log is a publisher whose log can be read. With one, the relay heals a database and a log that went back. It must be
// the only writer of its topics: next to another's records it sends events again, and at last parks their keys.
type Log interface {
	// PublishAcked publishes until ctx ends. The context of each acknowledged message then has its record's place, as
	// an [event.Origin]. repeated reports that a record may be on the log twice. See [FailedIndexes] for the error.
	PublishAcked(ctx context.Context, topic string, msgs ...*message.Message) (repeated bool, err error)
	// PartitionOf returns the partition of a key in a topic with so many.
	PartitionOf(key string, partitions int32) int32
	// EachEnd calls each for every partition of the topics, with the offsets of its first record and behind its last, or
	// with an error; partition -1 is a whole topic.
	EachEnd(
		ctx context.Context, topics []string, each func(topic string, partition int32, start, end int64, err error),
	) error
	// ReadLog returns at least the first of a partition's records from one offset to before another. The messages have
	// their places in their contexts.
	ReadLog(ctx context.Context, topic string, partition int32, from, to int64) ([]*message.Message, error)
}

type topicPartition struct {
	topic  string
	number int32
}

// MarshalText and UnmarshalText make it a name in the cursor row.
func (p topicPartition) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s/%d", p.topic, p.number), nil
}

func (p topicPartition) String() string {
	text, _ := p.MarshalText()
	return string(text)
}

func (p *topicPartition) UnmarshalText(text []byte) error {
	slash := bytes.LastIndexByte(text, '/')
	number, err := strconv.ParseInt(string(text[slash+1:]), 10, 32)
	p.topic, p.number = string(text[:max(slash, 0)]), int32(number)
	return err
}

// storedEnd is a partition in the cursor row; see migrations/outbox/0010_ends.sql.
type storedEnd struct {
	End      int64  `json:"end"`
	Time     int64  `json:"time"`
	Expected int64  `json:"expected"`
	From     *int64 `json:"from,omitempty"` // the rows above this position are sent again; nil: the partition is not ill
}

// end is a partition of the log.
type end struct {
	topicPartition
	stored      storedEnd
	state       endState
	known, time int64 // the end behind all records that are done with, and when the last one was appended
	need        int64 // an end below it was lost, or never written
	hasLoss     bool  // an acknowledged record is gone
	isReported  bool  // a line reports the loss, and no pass has healed it yet
	err         error // why it is not ready
}

type endState int

const (
	endUnseen   endState = iota // no look has succeeded
	endDoubtful                 // the next look reads the records above the last right point again
	endIll                      // passes send its rows and lost events again
	endReady                    // to be published to; an ill one for which no row has to be sent waits for a page
)

type ends struct {
	log    Log
	counts map[string]int32
	of     map[topicPartition]*end
	failed map[string]error

	topics     []string  // looked at from the start
	server     string    // the cluster and the timeline
	isBaseline bool      // no leader has looked: an older edition published up to the ends as they are
	landed     time.Time // a former leader's records have landed by then
	lookAt     time.Time
	askAt      time.Time
	pointAt    time.Time
	isRefused  bool // the cursor row has a refusal
	changes    int  // of versions and parked keys: what was read before must be read again
}

const loadEndsSQL = `
select c.ends, c.up_to, c.looked_at, c.refused is not null,
    s.system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
from public.outbox_cursor c cross join pg_control_system() s`

const topicsSQL = `select distinct topic from public.outbox_key`

// loadEnds begins a leadership. In a database that went back it waits for the records of a former leader.
func (l *leader) loadEnds(ctx context.Context) error {
	log, is := l.cfg.Publisher.(Log)
	if !is {
		return nil
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	e := &ends{
		log: log, counts: map[string]int32{}, of: map[topicPartition]*end{}, failed: map[string]error{},
		topics: l.cfg.Topics, askAt: time.Now().Add(l.cfg.askEvery),
	}
	var stored storedEnds // nil: no leader has looked
	var lookedAt *string
	err := l.conn.QueryRow(ctx, loadEndsSQL).Scan(&stored, &l.upTo, &lookedAt, &e.isRefused, &e.server)
	if err != nil {
		return fmt.Errorf("load ends of the log: %w", err)
	}
	e.isBaseline = stored == nil
	for name, known := range stored {
		p := e.add(name)
		p.stored, p.need = known, known.Expected
	}
	if e.isBaseline {
		rows, _ := l.conn.Query(ctx, topicsSQL)
		known, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		e.topics = append(known, e.topics...)
	}
	if e.isBaseline || lookedAt != nil && *lookedAt != e.server {
		e.landed = time.Now().Add(l.cfg.landWithin)
		l.cfg.Log.Info("relay waits for records that a former leader may have under way", "for", l.cfg.landWithin)
	}
	l.ends = e
	return nil
}

func (e *ends) add(p topicPartition) *end {
	found := e.of[p]
	if found == nil {
		found = &end{topicPartition: p, err: errNotLooked}
		e.of[p] = found
	}
	return found
}

var (
	errNotLooked error = unfinishedError{errors.New("outbox: the end of the log is not known yet")}
	errNotClean  error = unfinishedError{errors.New("outbox: the records are not where the log ended")}
	errNotNext         = errors.New("outbox: another producer wrote next to the records")
)

// unfinishedError keeps a key from being parked for it.
type unfinishedError struct{ error }

func (e unfinishedError) Unwrap() error  { return e.error }
func (unfinishedError) Unfinished() bool { return true }

func (e *ends) place(r *record) *end {
	if r.end = nil; e.counts[r.Topic] > 0 {
		r.end = e.add(topicPartition{r.Topic, e.log.PartitionOf(r.Key, e.counts[r.Topic])})
	}
	return r.end
}

func (e *ends) whyNotReady(r *record) error {
	switch {
	case e == nil:
		return nil
	case e.place(r) == nil:
		return cmp.Or(e.failed[r.Topic], errNotLooked)
	case r.end.state != endReady:
		return cmp.Or(e.failed[r.Topic], r.end.err, errNotLooked)
	}
	return nil
}

func (e *end) doubt(need int64, lost bool) {
	e.state, e.need, e.hasLoss, e.err = endDoubtful, need, e.hasLoss || lost, errNotClean
}

// readyOrPark looks at the partitions of a page, and parks keys whose partitions do not answer. changed: rows may have
// other versions, so the page must be read again.
func (l *leader) readyOrPark(ctx context.Context, page []record) (settled settlement, changed bool, err error) {
	began, pauses := time.Now(), failure.Backoff{Min: l.cfg.retryMin, Max: l.cfg.retryMax}
	for attempt := 1; ; attempt++ {
		changed, err = l.makeReadyFor(ctx, page)
		if changed || err != nil {
			return settled, changed, err
		}
		settled.held = nil // the rows of parked keys are held with the page
		var unseen []record
		var reasons []error
		waits := false
		for i := range page {
			r := &page[i]
			if why := l.ends.whyNotReady(r); why != nil && (r.end == nil || r.end.state == endUnseen) {
				unseen, reasons = append(unseen, *r), append(reasons, why)
				waits = waits || l.parked[r.key()] == 0
			}
		}
		if len(unseen) == 0 {
			return settled, false, nil
		}
		if waits {
			l.note(ctx, unseen, reasons, len(unseen))
		}
		unseen = l.settle(unseen, reasons, &settled, waits && l.mayPark(reasons, attempt, time.Since(began)))
		if len(unseen) == 0 {
			return settled, false, nil
		}
		if err := l.backOff(ctx, pauses.Next()); err != nil {
			return settled, false, err
		}
	}
}

func (l *leader) makeReadyFor(ctx context.Context, records []record) (changed bool, err error) {
	if l.ends == nil {
		return false, nil
	}
	var topics []string
	for i := range records {
		if r := &records[i]; l.ends.whyNotReady(r) != nil && !slices.Contains(topics, r.Topic) {
			topics = append(topics, r.Topic)
		}
	}
	if topics == nil {
		return false, nil
	}
	before := l.ends.changes
	err = l.makeReady(ctx, topics)
	return l.ends.changes != before, err
}

// storedEnds are the ends in the cursor row.
type storedEnds map[topicPartition]storedEnd

// planEnds returns the ends to store before the records are sent. An ill partition keeps its End and its From.
func (e *ends) planEnds(records []record) storedEnds {
	if e == nil {
		return nil
	}
	n := map[*end]int64{}
	for i := range records {
		if p := records[i].end; p != nil && (p.state == endReady || records[i].resent) {
			n[p]++
		}
	}
	all := make(storedEnds, len(e.of))
	for name, p := range e.of {
		next := p.stored
		switch {
		case next.From != nil:
			next.Expected = max(p.need, p.known) + n[p]
		case p.state == endReady:
			next = storedEnd{End: p.known, Time: p.time, Expected: p.known + n[p]}
		case p.state != endUnseen:
			next = storedEnd{End: p.known, Time: p.time, Expected: max(next.Expected, p.known)}
		}
		all[name] = next
	}
	return all
}

// storeExpected stores the expected ends of a call, unless the page's update covers them.
func (l *leader) storeExpected(ctx context.Context, records []record) error {
	ends := l.ends.planEnds(records)
	covered := true
	for p, next := range ends {
		covered = covered && next.Expected <= l.ends.of[p].stored.Expected
	}
	if covered {
		return nil
	}
	if err := l.guarded(ctx, nil, ends); err != nil {
		return fmt.Errorf("store expected ends: %w", err)
	}
	return nil
}

// noteAcked compares a call's acknowledgements with the known ends.
func (e *ends) noteAcked(records []record, call *publishCall) {
	if e == nil {
		return
	}
	calls := map[*end][]int{}
	for i := range records {
		calls[records[i].end] = append(calls[records[i].end], i)
	}
	for p, indexes := range calls {
		p.noteAcked(call, indexes)
		if p.stored.From != nil {
			e.lookAt = time.Time{}
		}
	}
}

// noteAcked moves the known end behind the acknowledged records if they have exactly the next offsets, and no record
// may be missing or doubled. Else the partition is doubtful, and all its records count as failed.
func (e *end) noteAcked(call *publishCall, indexes []int) {
	var offsets []int64
	var latest time.Time
	refused, isMissed, isRepeated := int64(0), false, call.repeated.Load()
	for _, i := range indexes {
		switch place, why := call.places[i], call.results[i]; {
		case place != nil && place.Partition == e.number:
			offsets = append(offsets, place.Offset)
			if place.Time.After(latest) {
				latest = place.Time
			}
		case place == nil && (isPermanent(why) || errors.Is(why, errBehind) || isUnsent(why)):
			refused++
		default:
			isMissed = true
		}
	}
	slices.Sort(offsets)
	isNext, isLoss := true, false
	for i, offset := range offsets {
		isNext = isNext && offset == e.known+int64(i)
		isLoss = isLoss || offset < e.known || i > 0 && offset == offsets[i-1]
	}
	e.err = nil
	switch {
	case isRepeated || isMissed || !isNext:
		need := e.stored.Expected - refused
		if n := len(offsets); n > 0 {
			need = max(need, offsets[n-1]+1) // records of others may be before it
		}
		e.doubt(need, isLoss)
		if !isRepeated && !isLoss && !isMissed && e.stored.From == nil {
			e.err = errNotNext // the log has all of them; their keys are parked if this happens again and again
		}
	case len(offsets) > 0:
		e.known, e.time = e.known+int64(len(offsets)), latest.UnixMilli()
		if e.stored.From != nil {
			e.state, e.need = endIll, max(e.need, e.known)
		}
	}
	notClean := e.err
	for _, i := range indexes {
		switch why := call.results[i]; {
		case why == nil:
			call.results[i] = notClean
		case hasFailed(why):
			e.err = why // it may park keys if a pass fails again
		}
	}
}

// isUnsent reports an error of a record that is certainly not on the log.
func isUnsent(why error) bool {
	o, is := errors.AsType[interface {
		error
		OutcomeUnknown() bool
	}](why)
	return is && !o.OutcomeUnknown()
}

const pointSQL = `
insert into public.outbox_point (position, ends)
select $1, ends from public.outbox_cursor where epoch = $2 and not jsonb_path_exists(ends, '$.*.from')
on conflict (position) do nothing`

// storePoint must follow the store of a closed window.
func (l *leader) storePoint(ctx context.Context) error {
	e := l.ends
	if e == nil || time.Now().Before(e.pointAt) {
		return nil
	}
	e.pointAt = time.Now().Add(l.cfg.pointEvery)
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	if _, err := l.conn.Exec(ctx, pointSQL, l.publishedTo(), l.epoch); err != nil {
		return fmt.Errorf("store point: %w", err)
	}
	return nil
}
