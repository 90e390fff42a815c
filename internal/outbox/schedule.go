package outbox

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// Due is the moment at which a scheduled event is added, by the database's clock.
type Due struct {
	at    *time.Time // nil: after
	after time.Duration
}

// DueAt is a moment. An event of a past moment is due immediately.
func DueAt(at time.Time) Due { return Due{at: &at} }

// After is some time from the call of [Outbox.Schedule].
func After(d time.Duration) Due { return Due{after: d} }

// HeaderScheduledName is the extension with the name of a scheduled event.
const HeaderScheduledName = "ce_scheduledname"

const maxNameBytes = 255

// Schedule stores an event in the caller's transaction, to be added when it is due. The leader of the relay adds it
// exactly once, unless the transaction rolls back or the event is cancelled. The time in the event's id is the due
// time; it is also the event's time if that is zero. The event gets its version when it is added.
//
// The name is for [Cancel], and is in [HeaderScheduledName]. Scheduling under a name again replaces the event.
//
// An event is added some milliseconds after it is due, later while no relay leads or a transaction holds its key or its
// name. A new key is locked until the transaction ends. The event may name neither its id nor its version.
//
// Errors: [*EventError] with no event stored; else the database's.
func (o *Outbox) Schedule(ctx context.Context, tx pgx.Tx, name string, due Due, e event.Event) error {
	at := time.Now().Add(due.after)
	if due.at != nil {
		at = *due.at
	}
	switch {
	case name == "" || len(name) > maxNameBytes || !isText(name):
		return invalid("the name is not text of 1 to %d bytes", maxNameBytes)
	case at.Before(event.Earliest) || !at.Before(event.Latest):
		return invalid("due outside the years 2000 to 2199")
	case e.ID != "" || e.Version != 0:
		return invalid("a scheduled event does not name its id or its version")
	}
	ownTime := !e.Time.IsZero()
	e.ID, e.Time = newIDAt(at), cmp.Or(e.Time, at)
	e.Extensions = maps.Collect(maps.All(e.Extensions)) // the caller has the other
	e.Extensions[HeaderScheduledName] = name
	e = o.complete(e, event.CauseFrom(ctx))
	if refused := o.check(e); refused != nil {
		return refused
	}
	_, err := tx.Exec(ctx, scheduleSQL, name, due.at, due.after.Microseconds(), e.ID, e.Type, e.Source, e.Topic, e.Key,
		e.DataSchema, ownTime, e.Time, e.Extensions, e.Data)
	if err != nil {
		return fmt.Errorf("schedule event: %w", err)
	}
	return nil
}

// Consumers take an event's age from its id: it must not grow while the event waits.
func newIDAt(at time.Time) string {
	id := uuid.Must(uuid.NewV7())
	if at.After(time.Now()) {
		ms := at.UnixMilli()
		binary.BigEndian.PutUint16(id[0:], uint16(ms>>32))
		binary.BigEndian.PutUint32(id[2:], uint32(ms))
	}
	return id.String()
}

// scheduleSQL makes the row of a new key: AddDue would wait for one that it does not see yet.
const scheduleSQL = `
with known as (
    insert into public.outbox_key (topic, key, version) values ($7, $8, 0) on conflict (topic, key) do nothing
)
insert into public.outbox_scheduled
    (name, due_at, event_id, event_type, source, topic, key, data_schema, occurred_at, headers, payload)
values ($1, coalesce($2::timestamptz, clock_timestamp() + $3::bigint * interval '1 microsecond'),
    $4::text::uuid, $5, $6, $7, $8, $9, case when $10 then $11::timestamptz end, $12, $13)
on conflict (name) do update set
    due_at = excluded.due_at, event_id = excluded.event_id, event_type = excluded.event_type, source = excluded.source,
    topic = excluded.topic, key = excluded.key, data_schema = excluded.data_schema, occurred_at = excluded.occurred_at,
    headers = excluded.headers, payload = excluded.payload, scheduled_at = excluded.scheduled_at`

// Events of an earlier release may have a key without a row; "not exists" would read all keys.
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

// A key that was released while lockDueSQL ran may be locked with its second event only: this takes both, in order.
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
select coalesce(event_id::text, ''), source, event_type, topic, key, 0, data_schema, coalesce(occurred_at, due_at),
    payload, headers
from taken order by due_at`

// AddDue moves due events into the outbox, at most limit, and returns their number. The events of a key keep the order
// in which they became due. It leaves an event whose name or key another transaction holds.
func (o *Outbox) AddDue(ctx context.Context, tx pgx.Tx, limit int) (added int, err error) {
	var topics, keys []string
	if err := tx.QueryRow(ctx, lockDueSQL, limit).Scan(&topics, &keys); err != nil {
		return 0, fmt.Errorf("lock due events: %w", err)
	}
	if len(keys) == 0 {
		return 0, nil
	}
	rows, _ := tx.Query(ctx, takeDueSQL, limit, topics, keys)
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[event.Event])
	if err != nil {
		return 0, fmt.Errorf("take due events: %w", err)
	}
	entries := make([]entry, len(due))
	for i, e := range due {
		e = o.complete(e, event.Cause{})
		o.cfg.Spans.Create(&e)
		entries[i] = entry{Event: e}
	}
	_, err = o.insert(ctx, tx, entries)
	return len(due), err
}
