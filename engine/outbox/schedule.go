package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/engine/cloudevent"
)

// Due says when a scheduled event is to be added, by the clock of the database.
type Due struct {
	at    time.Time
	after time.Duration
}

// DueAt is a moment. One that has passed is due at once.
func DueAt(at time.Time) Due { return Due{at: at} }

// After is some time from the call of [Outbox.Schedule] on.
func After(d time.Duration) Due { return Due{after: d} }

// HeaderScheduledName is the extension with the name under which an event was scheduled.
const HeaderScheduledName = "ce_scheduledname"

// maxNameBytes is the longest name of a scheduled event.
const maxNameBytes = 255

// Schedule stores an event in the caller's transaction, to be added when it is due. If the transaction commits and the
// event is not cancelled, it is added exactly once, even if processes die: the relay's leader moves it into the outbox
// in one transaction, as [Outbox.Add] would add it then. Only there does it get its id, its version and its place
// behind the key's other events; if it names no time, its time is when it was due.
//
// The name is what it is cancelled by. It is one event's at a time in this database: scheduling under a name again
// replaces what waits there. The event carries the name as [HeaderScheduledName], and what led to the call is its
// cause.
//
// Not guaranteed: the moment. It is added some milliseconds after it is due while a relay leads; later while none does,
// while a transaction holds its key or its name, or within 30 s where another process has committed it and its
// notification was lost. Never before.
//
// Errors: [*EventError] with nothing stored, for an event that gives its id or version as well; else the database's.
func (o *Outbox) Schedule(ctx context.Context, tx pgx.Tx, name string, due Due, event cloudevent.Event) error {
	if o.cfg.Refuse != nil {
		if err := o.cfg.Refuse(); err != nil {
			return fmt.Errorf("schedule event: %w", err)
		}
	}
	now := o.cfg.Now()
	at := due.at
	if at.IsZero() {
		at = now.Add(due.after)
	}
	switch {
	case name == "" || len(name) > maxNameBytes || !validText(name):
		return refuse(CodeInvalidName, fmt.Sprintf("the name is not 1 to %d bytes of text", maxNameBytes))
	case at.Before(earliest) || !at.Before(latest):
		return refuse(CodeInvalidTime, "due outside the years 2000 to 2199")
	case event.ID != "":
		return refuse(CodeInvalidID, "a scheduled event gets its id when it is added: consumers take its age from it")
	case event.Version != 0:
		return refuse(CodeInvalidVersion, "a scheduled event gets its version when it is added")
	}
	var occurredAt *time.Time
	if event.Time.IsZero() {
		event.Time = at // for the check
	} else {
		own := event.Time.UTC().Truncate(time.Microsecond)
		occurredAt = &own
	}
	if event.Extensions = maps.Clone(event.Extensions); event.Extensions == nil {
		event.Extensions = make(map[string]string, 4)
	}
	event.Extensions[HeaderScheduledName] = name
	event = complete(event, o.cfg.Source, now, cloudevent.CauseFrom(ctx))
	if err := o.check(event); err != nil {
		return err
	}
	var dueAt *time.Time
	if !due.at.IsZero() {
		dueAt = &due.at
	}
	_, err := tx.Exec(ctx, scheduleSQL, name, dueAt, due.after.Microseconds(), event.Type, event.Source, event.Topic,
		event.Key, event.DataSchema, occurredAt, headersOf(event), event.Data)
	if err != nil {
		return fmt.Errorf("schedule event: %w", err)
	}
	return nil
}

const scheduleSQL = `
insert into public.outbox_scheduled
    (name, due_at, event_type, source, topic, key, data_schema, occurred_at, headers, payload)
values ($1, coalesce($2::timestamptz, clock_timestamp() + $3::bigint * interval '1 microsecond'),
    $4, $5, $6, $7, $8, $9, nullif($10::text, '')::jsonb, $11)
on conflict (name) do update set
    due_at = excluded.due_at, event_type = excluded.event_type, source = excluded.source, topic = excluded.topic,
    key = excluded.key, data_schema = excluded.data_schema, occurred_at = excluded.occurred_at,
    headers = excluded.headers, payload = excluded.payload, scheduled_at = excluded.scheduled_at`

const cancelSQL = `delete from public.outbox_scheduled where name = $1`

// Cancel takes back, in the caller's transaction, what was scheduled under the name. It reports false if nothing waits
// there: it was never scheduled, was cancelled, or has been added, and then consumers will see it. If it is being added
// at this moment, the call waits for the end of that, a few milliseconds.
func (o *Outbox) Cancel(ctx context.Context, tx pgx.Tx, name string) (cancelled bool, err error) {
	tag, err := tx.Exec(ctx, cancelSQL, name)
	if err != nil {
		return false, fmt.Errorf("cancel scheduled event: %w", err)
	}
	return tag.RowsAffected() > 0, nil
}

const nextDueSQL = `
select extract(epoch from due_at - clock_timestamp())::float8 from public.outbox_scheduled order by due_at limit 1`

// NextDue is how long it is, by the database's clock, until a scheduled event is due; not positive if one is already.
// It reports false if none is scheduled.
func NextDue(ctx context.Context, conn *pgx.Conn) (in time.Duration, scheduled bool, err error) {
	var seconds float64
	err = conn.QueryRow(ctx, nextDueSQL).Scan(&seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read next due event: %w", err)
	}
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second)), true, nil
}

const maxSeconds = 1e9 // fits into a duration, and is 31 years

// lockDueSQL takes what is due and no other transaction holds: one that cancels or replaces an event has until its end.
// It passes over the keys that are known to be held, however many events of theirs are due.
const lockDueSQL = `
select name, event_type, source, topic, key, data_schema, coalesce(occurred_at, due_at), headers, payload
from public.outbox_scheduled
where due_at <= clock_timestamp() and (topic, key) not in (select * from unnest($2::text[], $3::text[]))
order by due_at
limit $1
for update skip locked`

// lockKeysSQL locks those of the keys that are free, so that the insert behind it waits for no transaction that holds
// one.
const lockKeysSQL = `
select k.topic, k.key
from public.outbox_key k
join unnest($1::text[], $2::text[]) as w (topic, key) on k.topic = w.topic and k.key = w.key
for update of k skip locked`

// newKeysSQL locks those of the keys that are new to the outbox, and so have no row to lock.
const newKeysSQL = `
insert into public.outbox_key (topic, key, version)
select topic, key, 0 from unnest($1::text[], $2::text[]) as w (topic, key) order by topic, key
on conflict (topic, key) do nothing
returning topic, key`

const deleteDueSQL = `delete from public.outbox_scheduled where name = any ($1)`

// A new key that another transaction is adding cannot be seen, but for the wait for it.
const lockTimeoutSQL = `set local lock_timeout = '20ms'`

// scheduled is a row that is due, locked by this transaction.
type scheduled struct {
	name  string
	event cloudevent.Event
}

// keys are the topics and keys of events.
type keys struct{ topics, keys []string }

func (k *keys) add(topic, key string) {
	k.topics, k.keys = append(k.topics, topic), append(k.keys, key)
}

// AddDue moves events that are due into the outbox, up to a limit, in the order in which they became due, and returns
// how many. It is the relay's to call, in a transaction of its own. It leaves those whose name or key another
// transaction holds, and takes others instead: a writer that takes its time delays the events of its own keys alone.
// What it moves was checked when it was scheduled, and is not again.
func (o *Outbox) AddDue(ctx context.Context, tx pgx.Tx, limit int) (added int, err error) {
	if _, err := tx.Exec(ctx, lockTimeoutSQL); err != nil {
		return 0, fmt.Errorf("limit the wait for locks: %w", err)
	}
	due, err := lockDue(ctx, tx, limit)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	if o.cfg.Refuse != nil {
		if err := o.cfg.Refuse(); err != nil {
			return 0, fmt.Errorf("add due events: %w", err)
		}
	}
	names, events, index := make([]string, len(due)), make([]cloudevent.Event, len(due)), make([]int, len(due))
	for i, d := range due {
		d.event.ID = uuid.Must(uuid.NewV7()).String()
		o.cfg.Spans.Create(&d.event) // part: observability
		names[i], events[i], index[i] = d.name, d.event, i
	}
	b, err := newBatch(events, index, nil, make([]Added, len(due)))
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, deleteDueSQL, names); err != nil {
		return 0, fmt.Errorf("take due events: %w", err)
	}
	if err := o.insertEvents(ctx, tx, b); err != nil {
		return 0, err
	}
	return len(due), nil
}

// lockDue locks what is due together with its keys. Each round finds a key that is held, and there are no more of these
// than open transactions, or is the last.
func lockDue(ctx context.Context, tx pgx.Tx, limit int) ([]scheduled, error) {
	held := keys{[]string{}, []string{}}
	for {
		due, err := readDue(ctx, tx, limit, held)
		if err != nil || len(due) == 0 {
			return nil, err
		}
		before := len(held.keys)
		if err := lockKeys(ctx, tx, due, &held); err != nil {
			return nil, fmt.Errorf("lock keys of due events: %w", err)
		}
		if len(held.keys) == before {
			return due, nil
		}
	}
}

func readDue(ctx context.Context, tx pgx.Tx, limit int, held keys) ([]scheduled, error) {
	rows, _ := tx.Query(ctx, lockDueSQL, limit, held.topics, held.keys)
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d scheduled, err error) {
		var headers []byte
		e := &d.event
		err = row.Scan(&d.name, &e.Type, &e.Source, &e.Topic, &e.Key, &e.DataSchema, &e.Time, &headers, &e.Data)
		if err == nil && headers != nil {
			err = json.Unmarshal(headers, &e.Extensions)
		}
		e.Time = e.Time.UTC()
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("read due events: %w", err)
	}
	return due, nil
}

// lockKeys locks the events' keys and adds those that another transaction holds to held.
func lockKeys(ctx context.Context, tx pgx.Tx, due []scheduled, held *keys) error {
	wanted, rest := map[[2]string]bool{}, keys{}
	for _, d := range due {
		wanted[[2]string{d.event.Topic, d.event.Key}] = true
	}
	for key := range wanted {
		rest.add(key[0], key[1])
	}
	if err := takeKeys(ctx, tx, lockKeysSQL, &rest); err != nil || len(rest.keys) == 0 {
		return err
	}
	err := lockNewKeys(ctx, tx, &rest)
	if isLockTimeout(err) { // one of them is being added elsewhere: which one?
		for i := range rest.keys {
			one := keys{rest.topics[i : i+1], rest.keys[i : i+1]}
			switch err = lockNewKeys(ctx, tx, &one); {
			case isLockTimeout(err) || err == nil && len(one.keys) > 0:
				held.add(rest.topics[i], rest.keys[i])
			case err != nil:
				return err
			}
		}
		return nil
	}
	held.topics, held.keys = append(held.topics, rest.topics...), append(held.keys, rest.keys...)
	return err
}

// lockNewKeys does it in a savepoint, so that the transaction outlives a timeout.
func lockNewKeys(ctx context.Context, tx pgx.Tx, rest *keys) error {
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return takeKeys(ctx, tx, newKeysSQL, rest) })
}

// takeKeys runs a statement that locks keys, and leaves those that it does not return.
func takeKeys(ctx context.Context, tx pgx.Tx, sql string, rest *keys) error {
	rows, _ := tx.Query(ctx, sql, rest.topics, rest.keys)
	taken := map[[2]string]bool{}
	var topic, key string
	_, err := pgx.ForEachRow(rows, []any{&topic, &key}, func() error {
		taken[[2]string{topic, key}] = true
		return nil
	})
	if err != nil {
		return err
	}
	var left keys
	for i := range rest.keys {
		if !taken[[2]string{rest.topics[i], rest.keys[i]}] {
			left.add(rest.topics[i], rest.keys[i])
		}
	}
	*rest = left
	return nil
}

const lockNotAvailable = "55P03"

func isLockTimeout(err error) bool {
	refused, is := errors.AsType[*pgconn.PgError](err)
	return is && refused.Code == lockNotAvailable
}
