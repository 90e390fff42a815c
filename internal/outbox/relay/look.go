package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

type finding struct {
	*end
	from, to int64 // the log's first offset, and the one behind its last
	lastAt   int64

	isSure   bool  // the cursor's point is right
	point    point // the newest one that is right
	unplaced bool
	expired  bool // records above the point expired before they were looked up

	isLoss bool // no look has noted it before

	unknown []lostEvent
	foreign int

	isLast bool // no pass follows
}

// lostEvent is on the log, and neither its row nor its copy in outbox_lost is in the database.
type lostEvent struct {
	event.Event
	origin  event.Origin
	headers map[string]string
}

// pinging keeps the session while it asks the log.
func (l *leader) pinging(ctx context.Context, ask func(context.Context) error) error {
	asking, cancel := context.WithTimeoutCause(ctx, l.cfg.PublishTimeout, errPublishTimeout)
	defer cancel()
	var answer error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		answer = ask(asking)
	}()
	err := l.pingUntil(ctx, answered, math.MaxInt64) // ask ends with its context
	cancel()
	<-answered
	return errors.Join(err, answer)
}

// askEnds returns the partitions that have an answer. The others keep their error.
func (l *leader) askEnds(ctx context.Context, topics []string) (found []*finding, err error) {
	e := l.ends
	report := func(err error) {
		l.cfg.Destination.Report(err)
		l.health.fail(err)
	}
	counts := map[string]int32{}
	err = l.pinging(ctx, func(ctx context.Context) error {
		return e.log.EachEnd(ctx, topics, func(topic string, number int32, from, to int64, err error) {
			if err != nil {
				report(err)
			}
			if number < 0 {
				e.failed[topic] = err
				return
			}
			counts[topic] = max(counts[topic], number+1)
			end := e.add(topicPartition{topic, number})
			if err != nil {
				end.err = err
				return
			}
			found = append(found, &finding{end: end, from: from, to: to})
		})
	})
	if err != nil {
		report(err)
		for _, topic := range topics {
			e.failed[topic] = err
		}
		return nil, err
	}
	slices.SortFunc(found, func(a, b *finding) int { // a refusal has the same text at each look
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.number, b.number))
	})
	for topic, n := range counts {
		e.counts[topic] = n
		delete(e.failed, topic)
	}
	return found, nil
}

// A partition that does not answer keeps its error and is left out.
func (l *leader) look(ctx context.Context, topics []string) (looked []*finding, err error) {
	found, err := l.askEnds(ctx, topics)
	if l.conn.IsClosed() {
		return nil, err
	}
	for _, f := range found {
		if f.ready {
			continue
		}
		if f.unread = f.unread || f.to < f.known; f.unread { // a point may be gone with what was lost
			err = l.examine(ctx, f)
		} else {
			f.isSure, err = true, l.readLast(ctx, f)
		}
		if l.conn.IsClosed() {
			return nil, err
		}
		if err != nil { // begin again
			f.err = err
			l.health.fail(err)
			continue
		}
		looked = append(looked, f)
	}
	return looked, nil
}

type point struct {
	Position int64
	End      int64
	Time     int64
}

const pointsSQL = `
select position, coalesce((ends -> $1::text ->> 'end')::bigint, 0), coalesce((ends -> $1::text ->> 'time')::bigint, 0)
from public.outbox_point order by position desc`

func (l *leader) examine(ctx context.Context, f *finding) (err error) {
	f.point = point{l.publishedTo(), f.stored.End, f.stored.Time}
	if f.isSure, err = l.stands(ctx, f, f.point); err == nil && !f.isSure {
		f.point, err = l.olderPoint(ctx, f)
	}
	if err != nil {
		return err
	}
	begin := f.point.End
	switch {
	case f.unplaced:
		begin = f.to // after a confirmation all that is here is published again
	case begin < f.from:
		begin, f.expired = f.from, true
	}
	if err := l.readTail(ctx, f, begin); err != nil {
		return err
	}
	if f.foreign > 0 {
		l.cfg.Log.Warn("records of another producer are on the topic", "records", f.foreign, "topic", f.topic,
			"partition", f.number)
	}
	return l.readLast(ctx, f)
}

// It reports whether the record below the point's end is the one that was there.
func (l *leader) stands(ctx context.Context, f *finding, p point) (bool, error) {
	switch {
	case p.End == 0 || p.End <= f.from && p.End <= f.to: // there was none, or it has expired
		return true, nil
	case p.End > f.to:
		return false, nil
	}
	first, err := l.readAt(ctx, f, p.End-1, p.End)
	if err != nil || len(first) == 0 {
		return false, err
	}
	place, _ := event.OriginFrom(first[0].Context())
	return place.Offset == p.End-1 && place.Time.UnixMilli() == p.Time, nil
}

// If a point is right, so are those below it.
func (l *leader) olderPoint(ctx context.Context, f *finding) (point, error) {
	short, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := l.conn.Query(short, pointsSQL, f.String())
	points, err := pgx.CollectRows(rows, pgx.RowToStructByPos[point])
	if err != nil {
		return point{}, fmt.Errorf("read points: %w", err)
	}
	n := sort.Search(len(points), func(i int) bool {
		stands, failed := l.stands(ctx, f, points[i])
		err = errors.Join(err, failed)
		return stands
	})
	if n < len(points) {
		return points[n], err
	}
	f.unplaced = true
	return point{}, err
}

func (l *leader) readAt(ctx context.Context, f *finding, from, to int64) (records []*message.Message, err error) {
	err = l.pinging(ctx, func(ctx context.Context) error {
		records, err = l.ends.log.ReadLog(ctx, f.topic, f.number, from, to)
		return err
	})
	return records, err
}

func (l *leader) readTail(ctx context.Context, f *finding, from int64) error {
	for next := from; next < f.to; {
		records, err := l.readAt(ctx, f, next, f.to)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return fmt.Errorf("read %s: the log has no record from %d to %d", f.topicPartition, next, f.to)
		}
		if err := l.lookUp(ctx, f, records); err != nil {
			return err
		}
		last, _ := event.OriginFrom(records[len(records)-1].Context())
		next, f.lastAt = last.Offset+1, last.Time.UnixMilli()
	}
	return nil
}

func (l *leader) readLast(ctx context.Context, f *finding) error {
	switch {
	case f.lastAt != 0 || f.to <= f.from: // there is none
		return nil
	case f.isSure && f.stored.End == f.to:
		f.lastAt = f.stored.Time
		return nil
	}
	last, err := l.readAt(ctx, f, f.to-1, f.to)
	if err != nil {
		return err
	}
	if len(last) == 0 {
		return fmt.Errorf("read %s: the log has no record at %d", f.topicPartition, f.to-1)
	}
	place, _ := event.OriginFrom(last[0].Context())
	f.lastAt = place.Time.UnixMilli()
	return nil
}

// lookUpSQL finds a row by its position: "not exists" may read the whole outbox.
const lookUpSQL = `
select e.n
from unnest($1::bigint[], $2::text[], $3::bigint[]) with ordinality as e (position, id, version, n)
where (select 1 from public.outbox o
        where o.position = e.position and o.event_id::text = e.id and o.version = e.version) is null
    and (select 1 from public.outbox_lost l where l.event_id = e.id and l.version = e.version) is null`

// lookUp asks after the reading: a record that is on the log was committed before.
func (l *leader) lookUp(ctx context.Context, f *finding, records []*message.Message) error {
	var events []lostEvent
	var ids []string
	var positions, versions []int64
	for _, m := range records {
		e, position, err := readSent(m)
		if err != nil {
			f.foreign++
			continue
		}
		events = append(events, e)
		positions, ids, versions = append(positions, position), append(ids, e.ID), append(versions, e.Version)
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := l.conn.Query(ctx, lookUpSQL, positions, ids, versions)
	var n int
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
		f.unknown = append(f.unknown, events[n-1])
		return nil
	})
	if err != nil {
		return fmt.Errorf("look up records: %w", err)
	}
	return nil
}

var errForeign = errors.New("it has no outbox position, or is no event with a version")

// A record without a position is another producer's.
func readSent(m *message.Message) (e lostEvent, position int64, err error) {
	e.origin, _ = event.OriginFrom(m.Context())
	e.Event, err = event.FromMessage(m)
	position, noPosition := strconv.ParseInt(m.Metadata[event.HeaderPosition], 10, 64)
	if err != nil || noPosition != nil || e.Version == 0 {
		return e, 0, errForeign
	}
	e.Topic = e.origin.Topic
	e.headers = maps.Clone(m.Metadata)
	delete(e.headers, event.KeyMetadata)
	return e, position, nil
}
