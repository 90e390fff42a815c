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

// finding is a look at one partition.
type finding struct {
	*end
	l *leader

	from, to int64 // the log's first offset, and the one behind its last
	lastAt   int64 // when the last record was appended

	isSure     bool  // the cursor's point is right
	point      point // the newest one that is right
	isUnplaced bool  // none is
	isExpired  bool  // records above the point expired before they were looked up
	wasWell    bool  // before this look
	isLoss     bool  // no look has noted it before

	unknown []logRecord // neither their rows nor their copies in outbox_lost are in the database
	foreign int

	isLast bool // no pass follows
}

// look returns a finding for each partition that answers and is not ready.
func (l *leader) look(ctx context.Context, topics []string) (looked []*finding, err error) {
	found, err := l.askEnds(ctx, topics)
	if l.conn.IsClosed() {
		return nil, err
	}
	for _, f := range found {
		if f.state == endIll && f.to < f.known { // a point may be gone with what was lost
			f.state = endDoubtful
		}
		switch {
		case f.state == endReady:
			continue
		case f.state == endIll, l.ends.isBaseline:
			f.isSure, err = true, f.readLast(ctx)
		default:
			err = f.examine(ctx)
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
			found = append(found, &finding{end: end, l: l, from: from, to: to})
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

// examine reads the log from the newest right point on, and looks each record up in the database.
func (f *finding) examine(ctx context.Context) (err error) {
	f.point = point{f.l.publishedTo(), f.stored.End, f.stored.Time}
	if f.isSure, err = f.isRight(ctx, f.point); err == nil && !f.isSure {
		f.point, err = f.olderPoint(ctx)
	}
	if err != nil {
		return err
	}
	begin := f.point.End
	switch {
	case f.isUnplaced:
		begin = f.to // after a confirmation all that is here is published again
	case begin < f.from:
		begin, f.isExpired = f.from, true
	}
	for begin < f.to {
		records, last, err := f.readLog(ctx, begin, f.to)
		if err != nil {
			return err
		}
		if err := f.lookUp(ctx, records); err != nil {
			return err
		}
		begin, f.lastAt = last.Offset+1, last.Time.UnixMilli()
	}
	if f.foreign > 0 {
		f.l.cfg.Log.Warn("records of another producer are on the topic", "records", f.foreign, "topic", f.topic,
			"partition", f.number)
	}
	return f.readLast(ctx)
}

type point struct {
	Position int64
	End      int64
	Time     int64
}

// isRight reports whether the record below the point's end is the one that was there.
func (f *finding) isRight(ctx context.Context, p point) (bool, error) {
	switch {
	case p.End == 0 || p.End <= f.from && p.End <= f.to: // there was none, or it has expired
		return true, nil
	case p.End > f.to:
		return false, nil
	}
	_, first, err := f.readLog(ctx, p.End-1, p.End)
	if errors.Is(err, errNoRecord) {
		return false, nil
	}
	return err == nil && first.Offset == p.End-1 && first.Time.UnixMilli() == p.Time, err
}

const pointsSQL = `
select position, coalesce((ends -> $1::text ->> 'end')::bigint, 0), coalesce((ends -> $1::text ->> 'time')::bigint, 0)
from public.outbox_point order by position desc`

// olderPoint returns the newest stored point that is right: then so are those below it.
func (f *finding) olderPoint(ctx context.Context) (point, error) {
	short, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := f.l.conn.Query(short, pointsSQL, f.String())
	points, err := pgx.CollectRows(rows, pgx.RowToStructByPos[point])
	if err != nil {
		return point{}, fmt.Errorf("read points: %w", err)
	}
	n := sort.Search(len(points), func(i int) bool {
		isRight, failed := f.isRight(ctx, points[i])
		err = errors.Join(err, failed)
		return isRight
	})
	if n < len(points) {
		return points[n], err
	}
	f.isUnplaced = true
	return point{}, err
}

func (f *finding) readLast(ctx context.Context) error {
	switch {
	case f.lastAt != 0 || f.to <= f.from: // there is none
		return nil
	case f.isSure && f.stored.End == f.to:
		f.lastAt = f.stored.Time
		return nil
	}
	_, last, err := f.readLog(ctx, f.to-1, f.to)
	f.lastAt = last.Time.UnixMilli()
	return err
}

var errNoRecord = errors.New("the log has no record")

func (f *finding) readLog(
	ctx context.Context, from, to int64,
) (records []*message.Message, last event.Origin, err error) {
	err = f.l.pinging(ctx, func(ctx context.Context) (err error) {
		records, err = f.l.ends.log.ReadLog(ctx, f.topic, f.number, from, to)
		return err
	})
	if err == nil && len(records) == 0 {
		err = fmt.Errorf("read %s from %d to %d: %w", f.topicPartition, from, to, errNoRecord)
	}
	if err != nil {
		return nil, last, err
	}
	last, _ = event.OriginFrom(records[len(records)-1].Context())
	return records, last, nil
}

// lookUpSQL finds a row by its position: "not exists" may read the whole outbox.
const lookUpSQL = `
select e.n
from unnest($1::bigint[], $2::text[], $3::bigint[]) with ordinality as e (position, id, version, n)
where (select 1 from public.outbox o
        where o.position = e.position and o.event_id::text = e.id and o.version = e.version) is null
    and (select 1 from public.outbox_lost l where l.event_id = e.id and l.version = e.version) is null`

// lookUp asks after the reading: a record that is on the log was committed before.
func (f *finding) lookUp(ctx context.Context, records []*message.Message) error {
	var events []logRecord
	var ids []string
	var positions, versions []int64
	for _, m := range records {
		e, err := readRecord(m)
		if err != nil {
			f.foreign++
			continue
		}
		events = append(events, e)
		positions, ids, versions = append(positions, e.position), append(ids, e.ID), append(versions, e.Version)
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := f.l.conn.Query(ctx, lookUpSQL, positions, ids, versions)
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

// logRecord is an event as the log has it.
type logRecord struct {
	event.Event
	position int64 // of its row
	origin   event.Origin
	headers  map[string]string
}

var errForeign = errors.New("it has no outbox position, or is no event with a version")

// readRecord returns errForeign for a record of another producer.
func readRecord(m *message.Message) (r logRecord, err error) {
	r.origin, _ = event.OriginFrom(m.Context())
	r.Event, err = event.FromMessage(m)
	position, noPosition := strconv.ParseInt(m.Metadata[event.HeaderPosition], 10, 64)
	if err != nil || noPosition != nil || r.Version == 0 {
		return r, errForeign
	}
	r.Topic, r.position = r.origin.Topic, position
	r.headers = maps.Clone(m.Metadata)
	delete(r.headers, event.KeyMetadata)
	return r, nil
}
