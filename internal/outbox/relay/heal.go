package relay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// watchLog looks at the log where that is due. Nothing may be published before it returns true.
func (l *leader) watchLog(ctx context.Context) (ready bool, err error) {
	e := l.ends
	switch now := time.Now(); {
	case e == nil:
		return true, nil
	case now.Before(e.landed):
		l.health.well()
		return false, nil
	case now.After(e.askAt) && !e.isBaseline:
		e.askAt = now.Add(l.cfg.askEvery)
		l.compareEnds(ctx)
	}
	topics := e.unreadyTopics()
	if len(topics) == 0 && !e.isBaseline {
		return true, nil
	}
	if time.Now().After(e.lookAt) {
		err = l.makeReady(ctx, topics)
	}
	if err != nil && !errors.Is(err, errRefused) {
		return false, err
	}
	if e.isRefused {
		l.health.well()
	}
	return !e.isRefused && !e.isBaseline, nil
}

// unreadyTopics returns the topics with a partition that is not ready, or not known.
func (e *ends) unreadyTopics() (topics []string) {
	for _, topic := range e.topics {
		if e.counts[topic] == 0 {
			topics = append(topics, topic)
		}
	}
	for p, end := range e.of {
		if end.state != endReady {
			topics = append(topics, p.topic)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

func (l *leader) compareEnds(ctx context.Context) {
	if l.cfg.Destination.Down() {
		return
	}
	found, _ := l.askEnds(ctx, slices.Collect(maps.Keys(l.ends.counts)))
	for _, f := range found {
		if f.state == endReady && f.known != f.to {
			f.doubt(max(f.stored.Expected, f.known), f.to < f.known)
		}
	}
}

// makeReady returns an error of the session, or errRefused. A partition that fails stays not ready.
func (l *leader) makeReady(ctx context.Context, topics []string) error {
	e := l.ends
	began := time.Now()
	defer func() { e.lookAt = time.Now().Add(max(l.cfg.lookAgain, 9*time.Since(began))) }()
	for {
		looked, err := l.look(ctx, topics)
		switch {
		case err != nil:
			return err
		case e.isBaseline && !e.hasAllOf(looked), !e.isBaseline && len(looked) == 0:
			return nil
		}
		if err := l.refuse(ctx, looked); err != nil {
			return err
		}
		ill, err := l.check(ctx, looked)
		if err != nil {
			return err
		}
		if e.isBaseline {
			e.isBaseline = false
			return l.storePoint(ctx)
		}
		if len(ill) == 0 {
			return nil
		}
		again, err := l.runPass(ctx, ill)
		if err != nil || !again {
			return err
		}
	}
}

// unknownOf returns the events that the database lost, the oldest first.
func unknownOf(looked []*finding) (lost []logRecord) {
	for _, f := range looked {
		lost = append(lost, f.unknown...)
	}
	slices.SortStableFunc(lost, func(a, b logRecord) int { return a.origin.Time.Compare(b.origin.Time) })
	return lost
}

// lostKeys has the versions that each key has lost. Its arguments are those of versionsOf.
const lostKeys = `
(select topic, key, min(version) as low, max(version) as high, count(distinct version) as n
from unnest($1::text[], $2::text[], $3::bigint[]) as e (topic, key, version) group by topic, key) l`

func versionsOf(lost []logRecord) []any {
	topics, keys, versions := make([]string, len(lost)), make([]string, len(lost)), make([]int64, len(lost))
	for i, e := range lost {
		topics[i], keys[i], versions[i] = e.Topic, e.Key, e.Version
	}
	return []any{topics, keys, versions}
}

const insertLostSQL = `
insert into public.outbox_lost
    (topic, partition, "offset", event_id, event_type, key, version, headers, payload, appended_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`

const renumberSQL = `
select public.outbox_renumber(array_agg(topic), array_agg(key), array_agg(low), array_agg(high), $4)
from ` + lostKeys

const forgetPointsAboveSQL = `
delete from public.outbox_point p using jsonb_each($1) e where p.position > (e.value ->> 'from')::bigint`

const setChecked = `
    looked_at = $3, refused = null, confirmed = null,
    database_back_at = case when $4 then clock_timestamp() else database_back_at end,
    broker_back_at = case when $5 then clock_timestamp() else broker_back_at end`

// check stores what the looks found, in one transaction: a crash between the lost events and the new ends would lose an
// event. It returns the ill partitions.
func (l *leader) check(ctx context.Context, looked []*finding) (ill []*finding, err error) {
	e, lost, isLoss := l.ends, unknownOf(looked), false
	ends := e.planEnds(nil)
	for _, f := range looked {
		ends[f.topicPartition] = f.diagnose()
		if ends[f.topicPartition].From != nil {
			ill = append(ill, f)
		}
		isLoss = isLoss || f.isLoss
	}
	batch := &pgx.Batch{}
	for _, r := range lost {
		batch.Queue(insertLostSQL, r.Topic, r.origin.Partition, r.origin.Offset, r.ID, r.Type, r.Key, r.Version,
			r.headers, r.Data, r.origin.Time)
	}
	if len(lost) > 0 {
		batch.Queue(`set local statement_timeout = 0`) // the next statement may change every key
		batch.Queue(renumberSQL, append(versionsOf(lost), l.publishedTo())...)
	}
	batch.Queue(forgetPointsAboveSQL, ends)
	if _, _, err := l.change(ctx, batch, ends, setChecked, e.server, len(lost) > 0, isLoss); err != nil {
		return nil, fmt.Errorf("store a look at the log: %w", err)
	}
	e.isRefused = false
	for _, f := range ill {
		f.report()
	}
	for _, f := range looked {
		f.known, f.time, f.hasLoss, f.err = f.to, f.lastAt, false, nil
		if f.state = endIll; f.stored.From == nil {
			f.state, f.need = endReady, f.to
		}
	}
	if len(lost) == 0 {
		return ill, nil
	}
	e.changes++
	first, last := lost[0], lost[len(lost)-1]
	l.metrics.lostEvents.Add(float64(len(lost)))
	l.cfg.Log.Warn("the database went back", "events", len(lost), "from", first.origin.Time, "to", last.origin.Time,
		"event_id", first.ID, "topic", first.Topic, "version", first.Version)
	return ill, nil
}

// diagnose returns the end to store after the look. It has a From, which makes the partition ill, if records are lost
// or unknown, if an earlier pass has not ended, or if it is not sure that the records are there.
func (f *finding) diagnose() storedEnd {
	f.wasWell = f.stored.From == nil
	f.isLoss = f.hasLoss || f.state != endUnseen && f.to < f.known
	isIll := f.isLoss || !f.isSure || f.to < f.need || !f.wasWell || len(f.unknown) > 0
	if !isIll {
		return storedEnd{End: f.to, Time: f.lastAt, Expected: max(f.stored.Expected, f.to)}
	}
	next := f.stored
	next.Expected = max(f.need, f.to)
	if f.state != endIll && (f.wasWell || f.point.Position < *f.stored.From) {
		next.From = new(f.point.Position)
		f.isLoss = f.isLoss || !f.isSure && !f.isReported
	}
	if f.isUnplaced || f.isExpired { // confirmed: the next look begins here
		next.End, next.Time = f.to, f.lastAt
	}
	return next
}

func (f *finding) report() {
	switch {
	case f.isLoss:
		f.isReported = true
		f.l.metrics.brokerLosses.Inc()
		f.l.cfg.Log.Warn("the broker went back", "topic", f.topic, "partition", f.number, "end", f.to,
			"expected", max(f.need, f.known, f.stored.End), "from", *f.stored.From)
	case f.wasWell && len(f.unknown) == 0:
		f.l.cfg.Log.Info("an end is not sure after a crash", "topic", f.topic, "partition", f.number, "end", f.to,
			"expected", f.need, "from", *f.stored.From)
	}
}
