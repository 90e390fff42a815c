// Package restore finds out that a service's database was set back, and lets it go on behind what it has forgotten.
//
// A restore gives numbers out a second time: an older state of the database has forgotten events that it has published,
// and the next event of such a key gets the number of one that consumers have applied. They would skip it as stale.
// Nothing in the database can tell, so the only witness outside is asked: the broker. If it holds an event with a
// higher number than its key has here, the database went back.
//
// That is asked when a relay begins to lead and the server has been started, or the cursor's table been written anew,
// since it was asked last. It covers a base backup with and without recovery, on the same timeline and on another, a
// standby that was promoted before it had everything, and a dump in any cluster. It costs nothing at any other time.
//
// Not found: a restore after which the broker holds none of the events that were lost, or holds so many others behind
// them that none is among those that are compared (see relay.Config.Published).
package restore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/window"
)

const (
	// CodeRestored is the code of the [outbox.CheckError] with which a relay that found a restore does not publish, and
	// with which [CheckWriters] keeps writers waiting.
	CodeRestored = "restored"
	// CodeNotCompared is the code of [CheckWriters] until a relay has asked the broker.
	CodeNotCompared = "not_compared"
)

// incarnation is new when the server has been started or the cursor's table been written anew.
const incarnation = `extract(epoch from pg_postmaster_start_time())::text || '/'
    || pg_relation_filenode('public.outbox_cursor')::text`

// Standing is what the database knows of how it stands towards the broker.
type Standing struct {
	Restored string // why nothing is published
	Compared bool   // since the server was started and the cursor's table was written anew
	New      bool   // it had published nothing when the outbox was made, so it has forgotten nothing
}

const standingSQL = `
select coalesce(restored, ''), compared is not distinct from ` + incarnation + `, compared is not distinct from 'new'
from public.outbox_cursor where name = $1`

// ReadStanding is asked by a relay that leads.
func ReadStanding(ctx context.Context, db window.DB) (at Standing, err error) {
	err = db.QueryRow(ctx, standingSQL, window.CursorName).Scan(&at.Restored, &at.Compared, &at.New)
	if err != nil {
		return at, fmt.Errorf("read standing towards the broker: %w", err)
	}
	return at, nil
}

const comparedSQL = `
update public.outbox_cursor
set compared = case when $3 = '' then ` + incarnation + ` else compared end, restored = nullif($3, '')
where name = $1 and epoch = $2
returning epoch`

// Compare compares the broker's newest events with the database and writes down, for the leader of an epoch, what came
// of it: what is wrong, or that nothing is. A leader of another epoch gets [window.ErrDeposed].
func Compare(ctx context.Context, db window.DB, events []cloudevent.Event, epoch int64) (found string, err error) {
	lost, known, err := Lost(ctx, db, events)
	if err != nil {
		return "", err
	}
	if len(lost) > 0 {
		first := lost[0]
		found = fmt.Sprintf("%s holds version %d of key %s, this database knows %d; %d more events are like it",
			first.Topic, first.Version, first.Key, known, len(lost)-1)
	}
	err = db.QueryRow(ctx, comparedSQL, window.CursorName, epoch, found).Scan(&epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", window.ErrDeposed
	}
	if err != nil {
		return "", fmt.Errorf("record comparison: %w", err)
	}
	return found, nil
}

const knownSQL = `
select p.nth, coalesce(k.version, 0)
from unnest($1::text[], $2::text[], $3::bigint[]) with ordinality as p (topic, key, version, nth)
left join public.outbox_key k on k.topic = p.topic and k.key = p.key
where p.version > coalesce(k.version, 0)
order by p.nth`

// Lost are those of the events, in their order, that have higher numbers than their keys have in the database: it has
// forgotten them, or never knew them; known is the number that the first one's key has there. The events are as the
// broker holds them, with their topics.
func Lost(
	ctx context.Context, db window.DB, events []cloudevent.Event,
) (lost []cloudevent.Event, known int64, err error) {
	topics, keys, versions := make([]string, len(events)), make([]string, len(events)), make([]int64, len(events))
	for i, e := range events {
		topics[i], keys[i], versions[i] = e.Topic, e.Key, e.Version
	}
	rows, _ := db.Query(ctx, knownSQL, topics, keys, versions)
	var nth, version int64
	_, err = pgx.ForEachRow(rows, []any{&nth, &version}, func() error {
		if len(lost) == 0 {
			known = version
		}
		lost = append(lost, events[nth-1])
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("compare versions: %w", err)
	}
	return lost, known, nil
}

const checkWritersSQL = `
select problem.code, problem.detail
from (select) once
left join public.outbox_cursor c on c.name = $1
cross join lateral (values
    (c.name is null, 'schema', 'public.outbox_cursor has no row ' || $1),
    (c.sysid is distinct from (select system_identifier from pg_control_system()) and c.name is not null,
        '` + CodeRestored + `', 'the database comes from another cluster; its relay has to lead first'),
    (c.restored is not null, '` + CodeRestored + `', c.restored),
    (c.restored is null and c.compared <> 'new' and c.compared <> ` + incarnation + `,
        '` + CodeNotCompared + `', 'its relay has to lead and to ask the broker first'),
    ((select max(position) from public.outbox) > coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0),
        'sequence_behind', 'the sequence is behind the positions in the table')
) as problem (found, code, detail)
where problem.found`

// CheckWriters says whether events may be added: not in a database that was restored from another cluster before a
// relay has made the cursor this cluster's own, not if the restore lost the value of the sequence, and not before a
// restore that the relay has found is confirmed. New events would get numbers among the old ones, and be lost. A
// service that adds events asks after its relay has started, before it takes requests, and asks again while the answer
// is a [*outbox.CheckError] with the code [CodeRestored], or [CodeNotCompared] while the broker can be asked.
func CheckWriters(ctx context.Context, db window.DB) error {
	var e outbox.CheckError
	if err := e.Ask(ctx, db, checkWritersSQL, window.CursorName); err != nil {
		return fmt.Errorf("check outbox for writers: %w", err)
	}
	return e.Err()
}
