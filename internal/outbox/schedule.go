package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
)

// Due says when a scheduled event is to be added, by the clock of the database.
type Due struct {
	at    *time.Time // nil: after
	after time.Duration
}

// DueAt is a moment. One that has passed is due at once.
func DueAt(at time.Time) Due { return Due{at: &at} }

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
// notification was lost, or 30 s after the call. Never before.
//
// It locks the key until the transaction ends if the key is new.
//
// Errors: [*EventError] with nothing stored, for an event that gives its id or version as well; else the database's.
func (o *Outbox) Schedule(ctx context.Context, tx pgx.Tx, name string, due Due, event cloudevent.Event) error {
	if err := o.cfg.Refuse(); err != nil {
		return fmt.Errorf("schedule event: %w", err)
	}
	at := time.Now().Add(due.after)
	if due.at != nil {
		at = *due.at
	}
	switch {
	case name == "" || len(name) > maxNameBytes || !validText(name):
		return refuse(CodeInvalidName, fmt.Sprintf("the name is not 1 to %d bytes of text", maxNameBytes))
	case at.Before(cloudevent.Earliest) || !at.Before(cloudevent.Latest):
		return refuse(CodeInvalidTime, "due outside the years 2000 to 2199")
	case event.ID != "":
		return refuse(CodeInvalidID, "a scheduled event gets its id when it is added: consumers take its age from it")
	case event.Version != 0:
		return refuse(CodeInvalidVersion, "a scheduled event gets its version when it is added")
	}
	ownTime := !event.Time.IsZero()
	event.Time = cmp.Or(event.Time, at)                         // for the check
	event.Extensions = maps.Collect(maps.All(event.Extensions)) // the caller has the other
	event.Extensions[HeaderScheduledName] = name
	event, refused := o.prepare(event, cloudevent.CauseFrom(ctx))
	if refused != nil {
		return refused
	}
	o.scheduledAt.Store(time.Now().UnixNano())
	_, err := tx.Exec(ctx, scheduleSQL, name, due.at, due.after.Microseconds(), event.Type, event.Source, event.Topic,
		event.Key, event.DataSchema, ownTime, event.Time, event.Extensions, event.Data)
	if err != nil {
		return fmt.Errorf("schedule event: %w", err)
	}
	return nil
}

// scheduleSQL makes the key's row, if the key is new: the leader locks it before it adds the event, and can skip over a
// row that another transaction holds, but not over one that it does not see yet.
const scheduleSQL = `
with known as (
    insert into public.outbox_key (topic, key, version) values ($6, $7, 0) on conflict (topic, key) do nothing
)
insert into public.outbox_scheduled
    (name, due_at, event_type, source, topic, key, data_schema, occurred_at, headers, payload)
values ($1, coalesce($2::timestamptz, clock_timestamp() + $3::bigint * interval '1 microsecond'),
    $4, $5, $6, $7, $8, case when $9 then $10::timestamptz end, $11, $12)
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
select due_at - clock_timestamp() from public.outbox_scheduled order by due_at limit 1`

// NextDue is how long it is, by the database's clock, until a scheduled event is due; not positive if one is already.
// It reports false if none is scheduled.
func NextDue(ctx context.Context, conn *pgx.Conn) (in time.Duration, scheduled bool, err error) {
	err = conn.QueryRow(ctx, nextDueSQL).Scan(&in)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read next due event: %w", err)
	}
	return in, true, nil
}

// lockDueSQL finds what is due and locks it together with its keys. It passes over what another transaction holds, the
// event, which it may cancel or replace until its end, or the key, however many events of held keys are due. Only an
// event that was stored before [Outbox.Schedule] made keys' rows can have none; "not exists" would read all keys for
// it.
const lockDueSQL = `
with locked as (
    select s.topic, s.key
    from public.outbox_scheduled s
    where s.due_at <= (select clock_timestamp())
        and (exists (select from public.outbox_key k where k.topic = s.topic and k.key = s.key for update skip locked)
            or (select k.version from public.outbox_key k where k.topic = s.topic and k.key = s.key) is null)
    order by s.due_at
    limit $1
    for update of s skip locked
)
select array_agg(topic), array_agg(key) from locked`

// takeDueSQL takes what is due of keys that are locked, as [cloudevent.Event]. A key that was let go while lockDueSQL
// ran was passed over with its first events and locked with a later one: here all of them are in their order.
const takeDueSQL = `
with due as (
    select name from public.outbox_scheduled
    where due_at <= (select clock_timestamp()) and (topic, key) in (select * from unnest($2::text[], $3::text[]))
    order by due_at
    limit $1
    for update skip locked
), taken as (
    delete from public.outbox_scheduled s using due where s.name = due.name
    returning s.*
)
select '', source, event_type, topic, key, 0, data_schema, coalesce(occurred_at, due_at), payload, headers
from taken order by due_at`

// AddDue moves events that are due into the outbox, up to a limit, in the order in which they became due, and returns
// how many. It is the relay's to call, in a transaction of its own. It leaves those whose name or key another
// transaction holds, and takes others instead: a writer that takes its time delays the events of its own keys alone.
// What it moves was checked when it was scheduled, and is not again.
func (o *Outbox) AddDue(ctx context.Context, tx pgx.Tx, limit int) (added int, err error) {
	var topics, keys []string
	if err := tx.QueryRow(ctx, lockDueSQL, limit).Scan(&topics, &keys); err != nil {
		return 0, fmt.Errorf("lock due events: %w", err)
	}
	if len(keys) == 0 {
		return 0, nil
	}
	if err := o.cfg.Refuse(); err != nil {
		return 0, fmt.Errorf("add due events: %w", err)
	}
	rows, _ := tx.Query(ctx, takeDueSQL, limit, topics, keys)
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[cloudevent.Event])
	if err != nil {
		return 0, fmt.Errorf("take due events: %w", err)
	}
	b := &batch{items: make([]item, len(due)), added: make([]Added, len(due))}
	for i, e := range due {
		e.ID = uuid.Must(uuid.NewV7()).String()
		o.cfg.Spans.Create(&e)
		b.items[i] = item{Event: e, index: i}
	}
	_, err = o.insert(ctx, tx, b)
	return len(due), err
}
