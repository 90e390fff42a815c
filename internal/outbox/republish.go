package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/cloudevent"
)

// Selection says what to publish again. What is set must all hold; at least one thing must be set. It selects events:
// records that are none, such as copies of dead letters ([Outbox.AddRecord]), go again only if their topic or their ids
// are asked for. Nobody skips such a record for its id, and who fills a gap in a service's events has no use for it.
type Selection struct {
	From, To     int64     // positions, both included; 0: no bound
	Since, Until time.Time // business time, Until excluded; zero: no bound. Reads all rows that are kept
	IDs          []string  // event ids. Reads all rows that are kept
	Topic, Key   string
}

var (
	// ErrEmptySelection is for a [Selection] without a bound: it would publish everything.
	ErrEmptySelection = errors.New("outbox: nothing selected")
	// ErrRestoring means that the outbox was restored and the relay has not yet published what the restore left.
	ErrRestoring = errors.New("outbox: a restore is still being published")
)

const restoringSQL = `
select old_done is not null or sysid is distinct from (select system_identifier from pg_control_system())
from public.outbox_cursor where name = $1`

// isPublished is true of a row o that the cursor c has passed. Held and discarded rows are passed and not published.
// Of what was inserted before a restore only the old cluster's snapshots tell, as long as it is not all out.
const isPublished = `case when o.position > c.base then pg_visible_in_snapshot(o.xid, c.done)
        or coalesce(o.position <= c.win_pos and pg_visible_in_snapshot(o.xid, c.win), false)
    else c.old_done is null or o.position <= c.old_pos
        or o.position <= c.old_head and pg_visible_in_snapshot(o.xid, c.old_done)
        or coalesce(o.position <= c.old_win_pos and pg_visible_in_snapshot(o.xid, c.old_win), false) end`

// republishSQL takes only rows that were published: of others it would send a later one before an earlier one.
const republishSQL = `
select ` + columns + `
from public.outbox o
cross join public.outbox_cursor c
where c.name = $1 and o.position > $2 and o.position <= $3
    and ` + isPublished + `
    and ($4::timestamptz is null or o.occurred_at >= $4) and ($5::timestamptz is null or o.occurred_at < $5)
    and ($6::text[] is null or o.event_id = any($6::text[]::uuid[]))
    and ($7 = '' or o.topic = $7) and ($8 = '' or o.key = $8)
    and ($7 <> '' or $6::text[] is not null or (o.headers ? '` + cloudevent.RecordMetadata + `') is not true)
    and not exists (select from public.outbox_held h where h.position = o.position)
    and not exists (select from public.outbox_discarded d where d.position = o.position)
order by o.position
limit $9`

const republishPage = 500

// Republish sends events again that were published before and are still kept: same ids, same versions, in the order of
// their positions, so that consumers skip what they have. It returns how many were sent, also beside an error. It needs
// no relay and disturbs none: every row it sends is a duplicate.
func Republish(ctx context.Context, db DB, publisher message.Publisher, s Selection) (int, error) {
	if s.From == 0 && s.To == 0 && s.Since.IsZero() && s.Until.IsZero() && s.IDs == nil && s.Topic == "" && s.Key == "" {
		return 0, ErrEmptySelection
	}
	if err := checkRestoring(ctx, db); err != nil {
		return 0, err
	}
	pages := newPager(republishPage, 8<<20)
	sent, above := 0, max(s.From, 1)-1
	for {
		p, err := s.read(ctx, db, pages, above)
		if err != nil || len(p.records) == 0 {
			return sent, err
		}
		for _, c := range callsOf(p.records) {
			if err := publish(ctx, publisher, c.topic, c.events); err != nil {
				return sent, fmt.Errorf("republish to %s: %w", c.topic, err)
			}
			sent += len(c.events)
		}
		above = p.last()
	}
}

func checkRestoring(ctx context.Context, db DB) error {
	rows, err := db.Query(ctx, restoringSQL, cursorName)
	if err != nil {
		return fmt.Errorf("read cursor: %w", err)
	}
	defer rows.Close()
	restoring := true
	for rows.Next() {
		if err := rows.Scan(&restoring); err != nil {
			return fmt.Errorf("read cursor: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read cursor: %w", err)
	}
	if restoring {
		return ErrRestoring
	}
	return nil
}

func (s Selection) read(ctx context.Context, db DB, pages *pager, above int64) (page, error) {
	to := s.To
	if to == 0 {
		to = 1<<63 - 1
	}
	rows, err := db.Query(ctx, republishSQL, binaryResults, cursorName, above, to, optional(s.Since), optional(s.Until),
		s.IDs, s.Topic, s.Key, pages.limit)
	if err != nil {
		return page{}, fmt.Errorf("read published rows: %w", err)
	}
	return pages.collect(rows)
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
