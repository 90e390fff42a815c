package window

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/fault"
)

// leftover is what a restore into another cluster left to publish. The stored transaction ids are the old cluster's and
// mean nothing in this one's snapshots, but whether a row was visible in the old cursor's snapshots can still be
// computed from stored values alone. Rows above the old head were inserted after that snapshot was taken. Until it is
// published no window is opened.
type leftover struct {
	done   string // a pg_snapshot of the old cluster, like win
	head   int64
	win    *string // the window that was open, and how far it was published
	winPos *int64
	limit  int64 // the sequence head at the time of the rebase: rows above it are this cluster's
}

// rebaseLockSQL is how long writers may be kept waiting for the rebase to start. A transaction that has written to the
// outbox and not ended, a prepared one too, makes it fail; the relay tries again.
const rebaseLockSQL = `set local lock_timeout = '2s'`

// lockWritersSQL keeps writers out, and waits for those that have written: after it, every row is committed, and later
// ones take positions above the sequence's head.
const lockWritersSQL = `lock table public.outbox in share row exclusive mode`

// raiseSequenceSQL is for a restore that lost the sequence's value: new rows would fall among the old ones.
const raiseSequenceSQL = `
select setval('public.outbox_position_seq', top) from (select max(position) as top from public.outbox) t
where top > coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0)`

// rebaseSQL moves the cursor into this cluster. Of two restores in a row the first one's old_* count: nothing but the
// leftover has been published since, so the second only raises its limit.
const rebaseSQL = `
update public.outbox_cursor set
    old_done = coalesce(old_done, done),
    old_head = case when old_done is null then head else old_head end,
    old_win = case when old_done is null then win else old_win end,
    old_win_pos = case when old_done is null then win_pos else old_win_pos end,
    old_pos = case when old_done is null then $4 else old_pos end,
    old_limit = coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0),
    done = pg_current_snapshot(), head = coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0),
    base = coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0),
    win = null, win_head = null, win_pos = null,
    mark_x = '{0}', mark_h = array[coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0)],
    sysid = (select system_identifier from pg_control_system()), generation = generation + 1
where name = $1 and epoch = $2 and generation = $3`

// Rebase makes the cursor this cluster's. Everything that the old cluster had not published is then left to be
// published, before the first window is opened. Its error is PostgreSQL's lock_not_available while writers are busy.
func (r *Reader) Rebase(ctx context.Context) error {
	fault.Here("relay.rebase.before")
	from := r.marks.below(r.done.xmin)
	err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		for _, sql := range []string{rebaseLockSQL, lockWritersSQL, raiseSequenceSQL} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, rebaseSQL, CursorName, r.term.Epoch, r.generation, from)
		if err == nil && tag.RowsAffected() != 1 {
			err = r.whyNot(ctx, tx)
		}
		fault.Here("relay.rebase.in_tx")
		return err
	})
	if err != nil {
		return fmt.Errorf("rebase onto cluster %d: %w", r.here, err)
	}
	fault.Here("relay.rebase.after")
	c, err := loadCursor(ctx, r.conn)
	if err == nil { // else what is known is of the old cluster, and the next change finds out
		r.cursor = c
	}
	return err
}

const leftoverSQL = `
select ` + Columns + `
from public.outbox o
where o.position > $1 and o.position <= $2
    and not (o.position <= $3 and pg_visible_in_snapshot(o.xid, $4::pg_snapshot))
    and not coalesce(o.position <= $5 and pg_visible_in_snapshot(o.xid, $6::pg_snapshot), false)
order by o.position
limit $7`

const finishLeftoverSQL = `
update public.outbox_cursor
set old_done = null, old_head = null, old_win = null, old_win_pos = null, old_limit = null, old_pos = null, ` + guardSQL
