package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/fault"
)

// errRefused ends a page: nothing is published before an operator has confirmed.
var errRefused = errors.New("outbox: publishing waits for a confirmation")

// makeReady looks at the topics' partitions that are not ready, and publishes the rows of ill ones again, pass after
// pass. It returns an error of the session, or errRefused. A partition that fails stays not ready.
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
		clean, err := l.pass(ctx, ill)
		if err != nil || !clean {
			return err
		}
	}
}

// lostKey is what a look found of a key of which the database lost events.
type lostKey struct {
	key
	low, high int64 // their versions
	count     int64
	first     *lostEvent
}

func keysOf(looked []*finding) (keys []*lostKey) {
	of := map[key]*lostKey{}
	seen := map[key]map[int64]bool{}
	for _, f := range looked {
		for i := range f.unknown {
			e := &f.unknown[i]
			name := key{e.Topic, e.Key}
			k := of[name]
			if k == nil {
				k = &lostKey{key: name, low: e.Version, first: e}
				of[name], seen[name] = k, map[int64]bool{}
				keys = append(keys, k)
			}
			k.low, k.high = min(k.low, e.Version), max(k.high, e.Version)
			if !seen[name][e.Version] {
				seen[name][e.Version] = true
				k.count++
			}
		}
	}
	slices.SortFunc(keys, func(a, b *lostKey) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Key, b.Key))
	})
	return keys
}

const refuseSQL = `
update public.outbox_cursor set refused = $2, confirmed = null where epoch = $1 and refused is distinct from $2
returning pg_current_xact_id(), paused_at is not null`

const confirmedSQL = `select coalesce(confirmed = refused, false), coalesce(refused, '') from public.outbox_cursor`

// refuse returns errRefused if the look found something that only an operator can decide, until that is confirmed.
func (l *leader) refuse(ctx context.Context, looked []*finding) error {
	e := l.ends
	refusals, err := l.refusals(ctx, looked)
	if err != nil {
		return err
	}
	e.isRefused = false
	for _, refusal := range refusals {
		if e.confirmed[refusal] {
			continue
		}
		var isConfirmed bool
		var refused string
		if err := l.conn.QueryRow(ctx, confirmedSQL).Scan(&isConfirmed, &refused); err != nil {
			return fmt.Errorf("read confirmation: %w", err)
		}
		if isConfirmed && refused == refusal {
			e.confirmed[refusal] = true
			continue
		}
		e.isRefused = true
		if refused == refusal {
			return errRefused
		}
		l.cfg.Log.Error("publishing waits for a confirmation", "refusal", refusal)
		if _, _, err := l.change(ctx, nil, refuseSQL, l.epoch, refusal); err != nil {
			return fmt.Errorf("refuse: %w", err)
		}
		return errRefused
	}
	return nil
}

const keyVersionsSQL = `
select l.n, coalesce(k.version, 0) from unnest($1::text[], $2::text[]) with ordinality as l (topic, key, n)
left join public.outbox_key k on k.topic = l.topic and k.key = l.key`

// refusals are the reasons not to heal, in a fixed order. Each begins with its code.
func (l *leader) refusals(ctx context.Context, looked []*finding) (texts []string, err error) {
	var lost int
	var oldest *lostEvent
	for _, f := range looked {
		if f.unplaced {
			texts = append(texts, fmt.Sprintf("log_unplaceable: topic %s, partition %d ends at %d, and no point stands: "+
				"the broker lost more than this outbox can place, or the topic was created anew. Set the groups' offsets of %[1]s "+
				"to the earliest, then confirm: all rows that are still here are published.", f.topic, f.number, f.to))
		}
		if f.expired {
			texts = append(texts, fmt.Sprintf("records_expired: topic %s, partition %d: the records %d to %d expired before "+
				"they were looked up; versions may have been given twice. Set outbox_key from the consumers' inbox_key, then "+
				"confirm.", f.topic, f.number, f.end0, f.from-1))
		}
		for i := range f.unknown {
			if lost++; oldest == nil || f.unknown[i].origin.Time.Before(oldest.origin.Time) {
				oldest = &f.unknown[i]
			}
		}
	}
	if lost == 0 {
		return texts, nil
	}
	missing, err := l.missingVersion(ctx, keysOf(looked))
	if missing != "" {
		texts = append(texts, missing)
	}
	if err == nil && time.Since(oldest.origin.Time) > l.cfg.HealWithin {
		texts = append(texts, fmt.Sprintf("events_unknown: %d records have no row here (first: topic %s, partition %d, "+
			"offset %d, event %s, key %s version %d, %s). Either this database went back, or it is a copy that talks to "+
			"production's Kafka. A copy: stop it. Production: confirm; the events stay valid for consumers (outbox_lost), what "+
			"they did here is gone.", lost, oldest.Topic, oldest.origin.Partition, oldest.origin.Offset, oldest.ID,
			oldest.Key, oldest.Version, oldest.origin.Time.UTC().Format(time.RFC3339)))
	}
	return texts, err
}

// missingVersion finds the first key with a version that is neither here nor on the log.
func (l *leader) missingVersion(ctx context.Context, keys []*lostKey) (text string, err error) {
	topics, names := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		topics[i], names[i] = k.Topic, k.Key
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := l.conn.Query(ctx, keyVersionsSQL, topics, names)
	var n, version int64
	_, err = pgx.ForEachRow(rows, []any{&n, &version}, func() error {
		k := keys[n-1]
		missing := version + 1
		if k.low <= missing {
			missing = k.low + k.count
		}
		if text == "" && (k.low > version+1 || k.count <= k.high-k.low) {
			text = fmt.Sprintf("versions_missing: the database went back and the broker lost records: key %s of %s has lost "+
				"events of versions %d..%d, but version %d or a later one is neither here nor in the topic. Consumers in strict "+
				"order that have not applied it will park the key. Confirm to go on, then skip it at them (they are listed as "+
				"gaps).", k.Key, k.Topic, k.low, k.high, missing)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read versions of keys: %w", err)
	}
	return text, nil
}

const insertLostSQL = `
insert into public.outbox_lost
    (topic, partition, "offset", event_id, event_type, key, version, headers, payload, appended_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`

const renumberSQL = `select public.outbox_renumber($1, $2, $3, $4, $5)`

const checkedSQL = `
update public.outbox_cursor
set ends = $2, looked_at = $3, refused = null, confirmed = null,
    database_back_at = case when $4 then clock_timestamp() else database_back_at end,
    broker_back_at = case when $5 then clock_timestamp() else broker_back_at end
where epoch = $1
returning pg_current_xact_id(), paused_at is not null`

const forgetPointsAboveSQL = `delete from public.outbox_point where position > $1`

// check decides which partitions are ill, and stores that in one transaction with the lost events and the renumbering.
func (l *leader) check(ctx context.Context, looked []*finding) (ill []*finding, err error) {
	e := l.ends
	keys := keysOf(looked)
	plan := e.plan(nil)
	lowest, lossAny := int64(-1), false
	for _, f := range looked {
		next, isLoss := f.diagnose()
		plan[f.topicPartition] = next
		lossAny = lossAny || isLoss && f.stored.From == nil
		if next.From != nil {
			ill = append(ill, f)
			if lowest < 0 || *next.From < lowest {
				lowest = *next.From
			}
		}
	}
	if len(ill) > 0 || l.isNews(plan) {
		fault.Here("relay.heal.before")
		err = l.storeCheck(ctx, plan, looked, keys, lossAny, lowest)
		fault.Here("relay.heal.after")
		if err != nil {
			return nil, fmt.Errorf("store a look at the log: %w", err)
		}
	}
	if len(keys) > 0 {
		e.renumbered++
	}
	clear(e.confirmed)
	l.report(looked, keys, plan)
	e.apply(plan)
	e.lookedAt = &e.server
	for _, f := range looked {
		f.known, f.time, f.looked, f.unread, f.lost = f.to, f.lastAt, true, false, false
		f.ready = f.stored.From == nil
		f.err = nil
		if f.ready {
			f.need = f.to
		}
	}
	return ill, nil
}

// isNews reports whether a look found what the row does not have.
func (l *leader) isNews(plan map[topicPartition]storedEnd) bool {
	e := l.ends
	if e.lookedAt == nil || *e.lookedAt != e.server || len(e.confirmed) > 0 {
		return true
	}
	for p, next := range plan {
		if e.of[p].stored != next {
			return true
		}
	}
	return false
}

// diagnose returns what is stored of the partition. It is ill if its end is not sure.
func (f *finding) diagnose() (next storedEnd, isLoss bool) {
	isLoss = !f.isSure || f.lost || f.looked && f.to < f.known
	next = f.stored
	isIll := isLoss || f.to < f.need || next.From != nil || len(f.unknown) > 0
	if !isIll {
		return storedEnd{End: f.to, Time: f.lastAt, Expected: max(next.Expected, f.to)}, false
	}
	if f.unread && (next.From == nil || f.position < *next.From) {
		next.From = new(f.position)
	}
	if f.unplaced || f.expired { // confirmed: the next look begins here
		next.End, next.Time = f.to, f.lastAt
	}
	next.Expected = max(f.need, f.to)
	return next, isLoss
}

// storeCheck is one transaction, and its statements have this order: the second waits for writers, and the third sees
// their rows.
func (l *leader) storeCheck(
	ctx context.Context, plan map[topicPartition]storedEnd, looked []*finding, keys []*lostKey, isLoss bool, lowest int64,
) error {
	first := func(ctx context.Context, tx pgx.Tx) error {
		batch := &pgx.Batch{}
		for _, f := range looked {
			for _, e := range f.unknown {
				batch.Queue(insertLostSQL, e.Topic, e.origin.Partition, e.origin.Offset, e.ID, e.Type, e.Key, e.Version,
					e.headers, e.Data, e.origin.Time)
			}
		}
		if len(keys) > 0 {
			topics, names := make([]string, len(keys)), make([]string, len(keys))
			lows, highs := make([]int64, len(keys)), make([]int64, len(keys))
			for i, k := range keys {
				topics[i], names[i], lows[i], highs[i] = k.Topic, k.Key, k.low, k.high
			}
			batch.Queue(renumberSQL, topics, names, lows, highs, l.publishedTo())
		}
		if lowest >= 0 {
			batch.Queue(forgetPointsAboveSQL, lowest)
		}
		return tx.SendBatch(ctx, batch).Close()
	}
	args := []any{l.epoch, planText(plan), l.ends.server, len(keys) > 0, isLoss}
	if len(keys) == 0 && lowest < 0 {
		first = nil
	}
	_, _, err := l.change(ctx, first, checkedSQL, args...)
	return err
}

// report logs and counts what a look found, once.
func (l *leader) report(looked []*finding, keys []*lostKey, plan map[topicPartition]storedEnd) {
	lost := 0
	for _, f := range looked {
		lost += len(f.unknown)
		next := plan[f.topicPartition]
		if next.From == nil || f.stored.From != nil {
			continue
		}
		if _, isLoss := f.diagnose(); isLoss {
			l.metrics.brokerLosses.Inc()
			l.cfg.Log.Warn("the broker went back", "topic", f.topic, "partition", f.number, "end", f.to,
				"expected", max(f.need, f.known, f.stored.End), "from", *next.From)
		} else if len(f.unknown) == 0 {
			l.cfg.Log.Warn("an end is not sure after a crash", "topic", f.topic, "partition", f.number, "end", f.to,
				"expected", f.need, "from", *next.From)
		}
	}
	if lost == 0 {
		return
	}
	first := keys[0].first
	from, to := first.origin.Time, first.origin.Time
	for _, f := range looked {
		for i := range f.unknown {
			e := &f.unknown[i]
			if e.origin.Time.Before(from) {
				from, first = e.origin.Time, e
			}
			if e.origin.Time.After(to) {
				to = e.origin.Time
			}
		}
	}
	l.metrics.lostEvents.Add(float64(lost))
	l.cfg.Log.Warn("the database went back", "events", lost, "keys", len(keys), "from", from, "to", to,
		"event_id", first.ID, "topic", first.Topic, "version", first.Version)
}

// passSQL selects what has been sent: published rows, and those up to the end of the open page. Of a parked key it takes
// the rows below its held ones.
const passSQL = `
select ` + columns + `
from public.outbox o
where o.position > $1
    and (pg_visible_in_snapshot(o.xid, $2::pg_snapshot)
        or coalesce(o.position <= $4 and pg_visible_in_snapshot(o.xid, $3::pg_snapshot), false))
    and o.topic = any ($5)
    and not exists (select from public.outbox_held h
        where h.topic = o.topic and h.key = o.key and h.position <= o.position)
    and not exists (select from public.outbox_discarded d where d.position = o.position)
order by o.position
limit $6`

// pass sends the rows and the lost events of ill partitions again. It is the last one of a partition whose end was high
// enough when it began: then it lies above every offset that a consumer can have. A pass without records ends the heal
// of no partition: the next page comes first.
func (l *leader) pass(ctx context.Context, ill []*finding) (clean bool, err error) {
	fault.Here("relay.pass.before")
	isLast := map[*end]bool{}
	above, topics, of := *ill[0].stored.From, []string{}, map[*end]bool{}
	for _, f := range ill {
		above = min(above, *f.stored.From)
		topics = append(topics, f.topic)
		of[f.end], isLast[f.end] = true, f.to >= f.need
	}
	lost, err := l.lostOf(ctx, topics, of)
	if err != nil {
		return false, err
	}
	sent := map[*end]int{}
	for more := true; more; {
		var rows, page []record
		var open *string
		if l.open != nil {
			open = &l.open.text
		}
		rows, more, err = l.read(ctx, passSQL, above, l.done.text, open, l.upTo, topics)
		if err != nil {
			return false, err
		}
		for _, r := range rows {
			above = r.Position
			if p := l.ends.place(&r); of[p] && r.Position > *p.stored.From {
				page = append(page, lost.before(&r)...)
				r.resent = true
				page = append(page, r)
			}
		}
		if !more {
			page = append(page, lost.rest()...)
		}
		for len(page) > 0 {
			var part []record
			part, page = l.cutCall(page)
			if clean, err := l.resend(ctx, part); err != nil || !clean {
				return false, err
			}
			for i := range part {
				sent[part[i].end]++
			}
		}
	}
	fault.Here("relay.pass.after")
	return l.endPass(ctx, of, isLast, sent)
}

// resend sends records of a pass.
func (l *leader) resend(ctx context.Context, records []record) (clean bool, err error) {
	results, err := l.transmit(ctx, records)
	if err != nil {
		return false, err
	}
	l.note(records, results)
	var settled settlement
	for i, why := range results {
		switch r := &records[i]; {
		case why == nil:
			l.metrics.resent.Inc()
		case isPermanent(why) && r.lost:
			l.cfg.Log.Error("a lost event cannot be sent again", "event_id", r.ID, "topic", r.Topic, "error", why)
		case isPermanent(why):
			l.park(r, why, &settled)
			settled.held = append(settled.held, *r)
		case !errors.Is(why, errBehind):
			return false, nil
		case !r.lost:
			settled.held = append(settled.held, *r)
		}
	}
	if settled.held == nil {
		return true, nil
	}
	settled.log(ctx, l.cfg.Log)
	return true, l.guarded(ctx, settled.write)
}

// endPass removes what is healed from the row.
func (l *leader) endPass(ctx context.Context, of, isLast map[*end]bool, sent map[*end]int) (more bool, err error) {
	plan := l.ends.plan(nil)
	healed, records := 0, 0
	for p := range of {
		switch {
		case sent[p] == 0:
			p.ready = true // a page comes first
		case isLast[p]:
			plan[p.topicPartition] = storedEnd{End: p.known, Time: p.time, Expected: p.known}
			healed, records = healed+1, records+sent[p]
		default:
			more = true
		}
	}
	if healed == 0 {
		return more, nil
	}
	if _, _, err := l.change(ctx, nil, expectSQL, l.epoch, planText(plan)); err != nil {
		return false, fmt.Errorf("store the end of a heal: %w", err)
	}
	l.ends.apply(plan)
	for p := range of {
		if isLast[p] && sent[p] > 0 {
			p.need = p.known
		}
	}
	l.cfg.Log.Info("healed", "partitions", healed, "records", records)
	return true, nil
}

// lostEvents are the events of outbox_lost that a pass has not sent, of each key in the order of versions.
type lostEvents map[key][]record

const lostOfSQL = `
select event_id, key, topic, payload, headers from public.outbox_lost where topic = any ($1)
order by topic, key, version`

func (l *leader) lostOf(ctx context.Context, topics []string, of map[*end]bool) (lostEvents, error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	found := lostEvents{}
	rows, _ := l.conn.Query(ctx, lostOfSQL, topics)
	var id, name, topic string
	var payload []byte
	var headers map[string]string
	_, err := pgx.ForEachRow(rows, []any{&id, &name, &topic, &payload, &headers}, func() error {
		m := message.NewMessage(id, slices.Clone(payload))
		m.Metadata = headers
		m.Metadata[event.KeyMetadata] = name
		headers = nil
		e, err := event.FromMessage(m)
		if err != nil {
			return err
		}
		e.Topic = topic
		position, err := strconv.ParseInt(m.Metadata[event.HeaderPosition], 10, 64)
		r := record{Position: position, Event: e, lost: true, resent: true}
		if of[l.ends.place(&r)] {
			found[r.key()] = append(found[r.key()], r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read lost events: %w", err)
	}
	return found, nil
}

// before takes out the lost events of a row's key with lower versions.
func (e lostEvents) before(r *record) []record {
	all := e[r.key()]
	n := 0
	for n < len(all) && all[n].Version < r.Version {
		n++
	}
	if n > 0 {
		e[r.key()] = all[n:]
	}
	return all[:n]
}

func (e lostEvents) rest() (records []record) {
	for k, left := range e {
		records = append(records, left...)
		delete(e, k)
	}
	return records
}

const topicsSQL = `select distinct topic from public.outbox_key order by topic`

const baselinePointSQL = `insert into public.outbox_point (position, ends) values ($1, $2) on conflict do nothing`

// takeBaseline takes the ends of the log as they are: an older edition published up to there.
func (l *leader) takeBaseline(ctx context.Context) (ready bool, err error) {
	e := l.ends
	if time.Now().Before(e.lookAt) {
		return false, nil
	}
	e.lookAt = time.Now().Add(l.cfg.lookAgain)
	short, cancel := withStatementTimeout(ctx)
	defer cancel()
	rows, _ := l.conn.Query(short, topicsSQL)
	topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, fmt.Errorf("list topics: %w", err)
	}
	found, err := l.askEnds(ctx, topics)
	if err != nil {
		return false, nil //nolint:nilerr // it is asked again
	}
	plan, point := map[topicPartition]storedEnd{}, map[topicPartition]storedEnd{}
	for _, f := range found {
		if err := l.readLast(ctx, f); err != nil {
			l.health.fail(err)
			return false, nil
		}
		plan[f.topicPartition] = storedEnd{End: f.to, Time: f.lastAt, Expected: f.to}
		point[f.topicPartition] = storedEnd{End: f.to, Time: f.lastAt}
	}
	for p := range e.of {
		if _, answered := plan[p]; !answered {
			return false, nil
		}
	}
	_, _, err = l.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, baselinePointSQL, l.publishedTo(), planText(point))
		return err
	}, checkedSQL, l.epoch, planText(plan), e.server, false, false)
	if err != nil {
		return false, fmt.Errorf("store the first look at the log: %w", err)
	}
	e.apply(plan)
	e.isBaseline, e.lookedAt, e.lookAt = false, &e.server, time.Time{}
	for _, f := range found {
		f.known, f.time, f.need, f.looked, f.unread, f.ready = f.to, f.lastAt, f.to, true, false, true
	}
	return true, nil
}
