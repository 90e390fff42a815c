package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
)

// A restore gives numbers out a second time: an older state of this database has forgotten events that it has
// published, and the next event of such a key gets the number of one that consumers have applied. They would skip it
// as stale.
// Nothing in the database can tell, so the relay asks the only witness outside: the broker. If it holds an event with a
// higher number than its key has here, the database went back.
//
// That is asked when a relay begins to lead and the server has been started, or the cursor's table been written anew,
// since it was asked last. It covers a base backup with and without recovery, on the same timeline and on another, a
// standby that was promoted before it had everything, and a dump in any cluster. It costs nothing at any other time.
//
// Not found: a restore after which the broker holds none of the events that were lost, or holds so many others behind
// them that none is among those that are looked at (see RelayConfig.Published).

// CodeRestored is the code of the [CheckError] with which a relay that found a restore does not publish, and with which
// [CheckWriters] keeps writers waiting.
const CodeRestored = "restored"

// CodeNotCompared is the code of [CheckWriters] until a relay has asked the broker.
const CodeNotCompared = "not_compared"

// incarnation is new when the server has been started or the cursor's table been written anew.
const incarnation = `extract(epoch from pg_postmaster_start_time())::text || '/'
    || pg_relation_filenode('public.outbox_cursor')::text`

// standing is what the database knows of how it stands towards the broker.
type standing struct {
	restored string // why nothing is published
	compared bool   // since the server was started and the cursor's table was written anew
	isNew    bool   // it had published nothing when the outbox was made, so it has forgotten nothing
}

const standingColumns = `coalesce(restored, ''), compared is not distinct from ` + incarnation + `,
    compared is not distinct from 'new'`

const standingSQL = `select ` + standingColumns + ` from public.outbox_cursor where name = $1`

const comparedSQL = `
update public.outbox_cursor set compared = ` + incarnation + ` where name = $1 and epoch = $2`

const restoredSQL = `update public.outbox_cursor set restored = $3 where name = $1 and epoch = $2`

// awaitRestore returns when the broker holds nothing that this database does not know of, or an operator has confirmed.
// Until then the relay leads and publishes nothing, fails its health check at once, and refuses events in this process.
func (l *leader) awaitRestore(ctx context.Context) error {
	defer l.restored.Store(nil)
	at := l.reader.standing
	for said := ""; ; {
		found, err := l.findRestore(ctx, at)
		switch {
		case err != nil && l.conn.IsClosed(), errors.Is(err, errDeposed):
			return err
		case err != nil:
			l.health.failed(err)
		case found == "":
			return nil
		default:
			refused := &CheckError{[]Problem{{CodeRestored, found}}}
			l.restored.Store(refused)
			l.health.refuse(refused)
			err = refused
		}
		if text := err.Error(); text != said {
			said = text
			l.log.Error("relay publishes nothing: the broker may hold what the database does not know", "error", err)
		}
		if !sleep(ctx, l.cfg.ConfirmEvery) {
			return ctx.Err()
		}
		err = l.onConn(ctx, func(ctx context.Context) error {
			if err := l.term.renew(ctx, l.conn); err != nil {
				return err
			}
			return l.conn.QueryRow(ctx, standingSQL, cursorName).Scan(&at.restored, &at.compared, &at.isNew)
		})
		if err != nil {
			return err
		}
	}
}

// findRestore says what is wrong; empty: nothing.
func (l *leader) findRestore(ctx context.Context, at standing) (found string, err error) {
	if at.restored != "" || at.compared || l.cfg.Published == nil {
		return at.restored, nil
	}
	if !at.isNew {
		if found, err = l.compare(ctx); err != nil {
			return "", err
		}
	}
	sql, args := comparedSQL, []any{cursorName, l.term.epoch}
	if found != "" {
		sql, args = restoredSQL, append(args, found)
	}
	return found, l.onConn(ctx, func(ctx context.Context) error {
		tag, err := l.conn.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() != 1 {
			err = errDeposed
		}
		return err
	})
}

// compare reads the broker first: what it holds by then the database knew before.
func (l *leader) compare(ctx context.Context) (string, error) {
	ask, cancel := context.WithTimeout(ctx, l.cfg.Lease/2)
	defer cancel()
	events, err := l.cfg.Published(ask)
	if err != nil {
		return "", fmt.Errorf("compare with the broker: %w", err)
	}
	var lost []Published
	err = l.onConn(ctx, func(ctx context.Context) (err error) {
		lost, err = Lost(ctx, l.conn, events)
		return err
	})
	if err != nil || len(lost) == 0 {
		return "", err
	}
	first := lost[0]
	return fmt.Sprintf("%s holds version %d of key %s, this database knows %d; %d more events are like it",
		first.Topic, first.Event.Version, first.Event.Key, first.Known, len(lost)-1), nil
}

// Published is an event that the broker holds.
type Published struct {
	Topic string
	Event cloudevent.Event
	Known int64 // the number that its key has in the database; filled in by [Lost]
}

const knownSQL = `
select p.nth, coalesce(k.version, 0)
from unnest($1::text[], $2::text[], $3::bigint[]) with ordinality as p (topic, key, version, nth)
left join public.outbox_key k on k.topic = p.topic and k.key = p.key
where p.version > coalesce(k.version, 0)`

// Lost are those of the events, in their order, that have higher numbers than their keys have in the database: it has
// forgotten them, or never knew them.
func Lost(ctx context.Context, db DB, events []Published) ([]Published, error) {
	topics, keys, versions := make([]string, len(events)), make([]string, len(events)), make([]int64, len(events))
	for i, e := range events {
		topics[i], keys[i], versions[i] = e.Topic, e.Event.Key, e.Event.Version
	}
	rows, err := db.Query(ctx, knownSQL, topics, keys, versions)
	if err != nil {
		return nil, fmt.Errorf("compare versions: %w", err)
	}
	known := make(map[int64]int64)
	var nth, version int64
	_, err = pgx.ForEachRow(rows, []any{&nth, &version}, func() error {
		known[nth-1] = version
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare versions: %w", err)
	}
	var lost []Published
	for i, e := range events {
		if version, is := known[int64(i)]; is {
			e.Known = version
			lost = append(lost, e)
		}
	}
	return lost, nil
}

// Restored is not nil while the relay of this process knows of a restore that nobody has confirmed.
func (r *Relay) Restored() error {
	if refused := r.restored.Load(); refused != nil {
		return refused
	}
	return nil
}

const raiseKeySQL = `
insert into public.outbox_key as k (topic, key, version) values ($1, $2, $3)
on conflict (topic, key) do update set version = greatest(k.version, excluded.version)`

const confirmRestoreSQL = `
update public.outbox_cursor set restored = null, compared = ` + incarnation + ` where name = $1`

// ConfirmRestore makes the database go on behind the events that it has lost: adopt, if there is one, brings back what
// each says, in the order of each key's versions, and the key's next number is the one after it. So consumers see no
// number twice and no gap. Then the relay publishes again, within a second. It returns how many events were adopted.
//
// Call it with all that the broker holds, while nobody writes: [CheckWriters] keeps services from it.
func ConfirmRestore(
	ctx context.Context, tx pgx.Tx, lost []Published, adopt func(context.Context, pgx.Tx, cloudevent.Event) error,
) (adopted int, err error) {
	reached := map[keyName]int64{}
	for _, e := range lost {
		name := keyName{e.Topic, e.Event.Key}
		if e.Event.Version <= max(e.Known, reached[name]) {
			continue // it lies on the topic twice
		}
		if adopt != nil {
			if err := adopt(ctx, tx, e.Event); err != nil {
				return adopted, fmt.Errorf("adopt event %s: %w", e.Event.ID, err)
			}
		}
		reached[name] = e.Event.Version
		adopted++
	}
	batch := &pgx.Batch{}
	for name, version := range reached {
		batch.Queue(raiseKeySQL, name.topic, name.key, version)
	}
	batch.Queue(confirmRestoreSQL, cursorName)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return adopted, fmt.Errorf("raise versions: %w", err)
	}
	return adopted, nil
}
