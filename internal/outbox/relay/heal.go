package relay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// makeReady returns an error of the session, or errRefused. A partition that fails stays not ready.
func (l *leader) makeReady(ctx context.Context, topics []string) error {
	e := l.ends
	began := time.Now()
	defer func() { e.lookAt = time.Now().Add(max(l.cfg.lookAgain, 9*time.Since(began))) }()
	for {
		looked, err := l.look(ctx, topics)
		if err != nil || len(looked) == 0 {
			return err
		}
		if err := l.refuse(ctx, looked); err != nil {
			return err
		}
		ill, err := l.check(ctx, looked)
		if err != nil || len(ill) == 0 {
			return err
		}
		again, err := l.runPass(ctx, ill)
		if err != nil || !again {
			return err
		}
	}
}

// unknownOf returns the events that the database lost, the oldest first.
func unknownOf(looked []*finding) (lost []lostEvent) {
	for _, f := range looked {
		lost = append(lost, f.unknown...)
	}
	slices.SortStableFunc(lost, func(a, b lostEvent) int { return a.origin.Time.Compare(b.origin.Time) })
	return lost
}

// lostKeys has the versions that each key has lost. Its arguments are those of versionsOf.
const lostKeys = `
(select topic, key, min(version) as low, max(version) as high, count(distinct version) as n
from unnest($1::text[], $2::text[], $3::bigint[]) as e (topic, key, version) group by topic, key) l`

func versionsOf(lost []lostEvent) []any {
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

const setChecked = `
    ends = $2, looked_at = $3, refused = null, confirmed = null,
    database_back_at = case when $4 then clock_timestamp() else database_back_at end,
    broker_back_at = case when $5 then clock_timestamp() else broker_back_at end`

const forgetPointsAboveSQL = `
delete from public.outbox_point p using jsonb_each($1) e where p.position > (e.value ->> 'from')::bigint`

func (l *leader) check(ctx context.Context, looked []*finding) (ill []*finding, err error) {
	e := l.ends
	lost := unknownOf(looked)
	plan := e.plan(nil)
	for _, f := range looked {
		next := f.diagnose()
		plan[f.topicPartition] = next
		if next.From != nil {
			ill = append(ill, f)
		}
	}
	if err := l.storeCheck(ctx, looked, lost, plan); err != nil {
		return nil, fmt.Errorf("store a look at the log: %w", err)
	}
	if len(lost) > 0 {
		e.changes++
	}
	clear(e.confirmed)
	e.isRefused = false
	l.report(looked, lost, plan)
	e.apply(plan)
	for _, f := range looked {
		f.known, f.time, f.looked, f.unread, f.hasLoss = f.to, f.lastAt, true, false, false
		f.ready = f.stored.From == nil
		f.err = nil
		if f.ready {
			f.need = f.to
		}
	}
	return ill, nil
}

func (f *finding) diagnose() (next storedEnd) {
	f.isLoss = f.hasLoss || f.looked && f.to < f.known
	next = f.stored
	isIll := f.isLoss || !f.isSure || f.to < f.need || next.From != nil || len(f.unknown) > 0
	if !isIll {
		return storedEnd{End: f.to, Time: f.lastAt, Expected: max(next.Expected, f.to)}
	}
	if f.unread && (next.From == nil || f.point.Position < *next.From) {
		next.From = new(f.point.Position)
	}
	if f.unplaced || f.expired { // confirmed: the next look begins here
		next.End, next.Time = f.to, f.lastAt
	}
	next.Expected = max(f.need, f.to)
	isFirst := f.stored.From == nil || *next.From < *f.stored.From
	f.isLoss = f.isLoss || !f.isSure && isFirst && !f.isReported
	return next
}

// storeCheck is one transaction: a crash between the lost events and the new state would lose an event.
func (l *leader) storeCheck(
	ctx context.Context, looked []*finding, lost []lostEvent, plan map[topicPartition]storedEnd,
) error {
	batch := &pgx.Batch{}
	for _, e := range lost {
		batch.Queue(insertLostSQL, e.Topic, e.origin.Partition, e.origin.Offset, e.ID, e.Type, e.Key, e.Version,
			e.headers, e.Data, e.origin.Time)
	}
	if len(lost) > 0 {
		batch.Queue(`set local statement_timeout = 0`) // the next statement may change every key
		batch.Queue(renumberSQL, append(versionsOf(lost), l.publishedTo())...)
	}
	batch.Queue(forgetPointsAboveSQL, plan)
	isLoss := slices.ContainsFunc(looked, func(f *finding) bool { return f.isLoss })
	_, _, err := l.change(ctx, batch, setChecked, plan, l.ends.server, len(lost) > 0, isLoss)
	return err
}

func (l *leader) report(looked []*finding, lost []lostEvent, plan map[topicPartition]storedEnd) {
	for _, f := range looked {
		next := plan[f.topicPartition]
		if next.From == nil {
			continue
		}
		if f.isLoss {
			f.isReported = true
			l.metrics.brokerLosses.Inc()
			l.cfg.Log.Warn("the broker went back", "topic", f.topic, "partition", f.number, "end", f.to,
				"expected", max(f.need, f.known, f.stored.End), "from", *next.From)
		} else if len(f.unknown) == 0 && f.stored.From == nil {
			l.cfg.Log.Info("an end is not sure after a crash", "topic", f.topic, "partition", f.number, "end", f.to,
				"expected", f.need, "from", *next.From)
		}
	}
	if len(lost) == 0 {
		return
	}
	first, last := lost[0], lost[len(lost)-1]
	l.metrics.lostEvents.Add(float64(len(lost)))
	l.cfg.Log.Warn("the database went back", "events", len(lost), "from", first.origin.Time, "to", last.origin.Time,
		"event_id", first.ID, "topic", first.Topic, "version", first.Version)
}
