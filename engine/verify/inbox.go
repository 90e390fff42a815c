package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The pages follow the ids: a row that comes while they are read belongs to a record above the committed offset.
const selectRemembered = `
select event_id, event_time, substring(payload_hash from 1 for 8),
    coalesce(metadata->>'outcome', '') in ('dead', 'parked', 'gap'), metadata ? 'conflict',
    coalesce(metadata->>'topic', ''), coalesce((metadata->>'partition')::int, -1),
    coalesce((metadata->>'offset')::bigint, -1), processed_at
from public.inbox
where consumer = $1 and (event_id, event_time) > ($2, $3)
order by event_id, event_time limit $4`

// inboxRow is a row as it is read; it is not kept.
type inboxRow struct {
	id        string
	place     time.Time
	hash      []byte
	topic     string
	processed time.Time
	fact      remembered
}

func (r *inboxRow) scan(rows pgx.Rows) error {
	f := &r.fact
	err := rows.Scan(&r.id, &r.place, &r.hash, &f.aside, &f.conflict, &r.topic, &f.part, &f.offset, &r.processed)
	f.processed, f.hash = r.processed.Unix(), shortHash(r.hash)
	return err
}

func shortHash(hash []byte) uint64 {
	if len(hash) < 8 { // of an id that was marked without its event
		return 0
	}
	return binary.BigEndian.Uint64(hash)
}

// readRemembered calls each for the rows of a consumer.
func readRemembered(ctx context.Context, db DB, consumer string, each func(*inboxRow)) error {
	id, place := "", time.Time{}
	for {
		rows, _ := db.Query(ctx, selectRemembered, consumer, id, place, pageRows)
		n := 0
		for rows.Next() {
			var r inboxRow
			if err := r.scan(rows); err != nil {
				rows.Close()
				return fmt.Errorf("read inbox row: %w", err)
			}
			n, id, place = n+1, r.id, r.place
			each(&r)
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("read inbox: %w", err)
		}
		if n < pageRows {
			return nil
		}
	}
}

const selectLetters = `
select id, event_id, substring(sha256(payload) from 1 for 8), topic, partition, record_offset, edited_at is not null,
    key, state = 'waiting'
from public.dead_letter
where consumer = $1 and id > $2
order by id limit $3`

// readLetters collects the dead letters of a consumer, in every state: none is ever deleted.
func (v *consumedView) readLetters(ctx context.Context, db DB, topic string) (dead int64, err error) {
	for after, n := int64(0), pageRows; n == pageRows; {
		n = 0
		var id, of string
		var hash, key []byte
		var partition int32
		var offset int64
		var edited, waits bool
		rows, _ := db.Query(ctx, selectLetters, v.consumer, after, pageRows)
		scan := []any{&after, &id, &hash, &of, &partition, &offset, &edited, &key, &waits}
		_, err := pgx.ForEachRow(rows, scan, func() error {
			n++
			eventID := hashOf(topic, id)
			if waits {
				dead++
			}
			v.ids[eventID] = true
			v.lettered[[2]uint64{eventID, shortHash(hash)}] = true
			if of == topic {
				v.letters[place{offset, partition}] = true
			}
			if edited {
				v.edited[hashOf(topic, string(key))] = true
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("read dead letters: %w", err)
		}
	}
	return dead, nil
}

const selectMarks = `
select key, version from public.inbox_watermark where consumer = $1 and key > $2 order by key limit $3`

// readMarks reads the watermarks of the keys that are looked at, after the inbox: a row and its watermark are one
// transaction, so none of the rows is above it.
func (v *consumedView) readMarks(ctx context.Context, db DB, each func(key string, version int64)) error {
	for after, n := "", pageRows; n == pageRows; {
		n = 0
		var version int64
		rows, _ := db.Query(ctx, selectMarks, v.consumer, after, pageRows)
		_, err := pgx.ForEachRow(rows, []any{&after, &version}, func() error {
			n++
			each(after, version)
			return nil
		})
		if err != nil {
			return fmt.Errorf("read watermarks: %w", err)
		}
	}
	return nil
}

const selectInboxHorizon = `select remembers_from from public.inbox_horizon`

// readHorizon is asked after the inbox: the horizon moves before anything is forgotten.
func (v *consumedView) readHorizon(ctx context.Context, db DB) error {
	var from time.Time
	if err := db.QueryRow(ctx, selectInboxHorizon).Scan(&from); err != nil {
		return fmt.Errorf("read inbox horizon: %w", err)
	}
	v.from = from.Unix()
	return nil
}
