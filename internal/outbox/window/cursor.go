package window

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
)

// CursorName is the one row of public.outbox_cursor.
const CursorName = "relay"

// cursor is what the cursor row says is published. It is loaded once per session and then kept in step with every
// change; nothing of it survives an error.
type cursor struct {
	generation int64
	sysid      int64 // the cluster that the stored transaction ids belong to; 0: not known
	here       int64 // the cluster that this session talks to
	done       snapshot
	marks      landmarks
	win        *window // what is open, if anything
}

// window is what is open: the rows that are visible in it and not in the one before, or what a restore left. They are
// published in the order of their positions.
type window struct {
	snapshot
	after    string // the snapshot before it: done, once it is stored
	head     int64  // the sequence head, read after the snapshot was taken: none of its rows lies above
	pos      int64  // published up to here
	leftover []any  // of a restore: the parameters of leftoverSQL behind the position. It is no window then
}

// IsPublished is the SQL condition that the cursor c has passed the row o. Held and discarded rows are passed and not
// published. Of what was inserted before a restore only the old cluster's snapshots tell, as long as it is not all out.
const IsPublished = `case when o.position > c.base then pg_visible_in_snapshot(o.xid, c.done)
        or coalesce(o.position <= c.win_pos and pg_visible_in_snapshot(o.xid, c.win), false)
    else c.old_done is null or o.position <= c.old_pos
        or o.position <= c.old_head and pg_visible_in_snapshot(o.xid, c.old_done)
        or coalesce(o.position <= c.old_win_pos and pg_visible_in_snapshot(o.xid, c.old_win), false) end`

// State is the SQL expression of what became of the row o: published, waiting, held or discarded.
const State = `case when exists (select from public.outbox_held h where h.position = o.position) then 'held'
    when exists (select from public.outbox_discarded d where d.position = o.position) then 'discarded'
    when ` + IsPublished + ` then 'published' else 'waiting' end`

// Partitions selects the table partitions of the outbox, each with its range of positions, upper not included.
const Partitions = `
select p.relname, bound[1]::bigint as lower, bound[2]::bigint as upper
from pg_inherits i
join pg_class p on p.oid = i.inhrelid
join pg_namespace n on n.oid = p.relnamespace and n.nspname = 'public'
cross join lateral regexp_match(pg_get_expr(p.relpartbound, p.oid),
    'FROM \(''?(-?\d+)''?\) TO \(''?(-?\d+)''?\)') as bound
where i.inhparent = 'public.outbox'::regclass and bound is not null`

// DB is a pool, a connection or a transaction that is read.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// loadSQL takes for what is missing beside something open, which no statement leaves behind, what publishes too much
// rather than too little.
const loadSQL = `
select generation, coalesce(sysid, 0), (select system_identifier from pg_control_system()), done::text, mark_x, mark_h,
    win::text, coalesce(win_head, 0), coalesce(win_pos, 0),
    old_done::text, coalesce(old_limit, 9223372036854775807), coalesce(old_head, 0), old_win_pos, old_win::text,
    coalesce(old_pos, 0)
from public.outbox_cursor where name = $1`

// loadCursor reads what is published.
func loadCursor(ctx context.Context, conn *pgx.Conn) (c cursor, err error) {
	var (
		w                         window
		done                      string
		win, oldDone, oldWin      *string
		oldLimit, oldHead, oldPos int64
		oldWinPos                 *int64
	)
	err = conn.QueryRow(ctx, loadSQL, CursorName).Scan(&c.generation, &c.sysid, &c.here, &done,
		&c.marks.xids, &c.marks.heads, &win, &w.head, &w.pos, &oldDone, &oldLimit, &oldHead, &oldWinPos, &oldWin, &oldPos)
	if err != nil {
		return c, fmt.Errorf("load cursor: %w", err)
	}
	if c.done, err = parseSnapshot(done); err != nil {
		return c, err
	}
	switch {
	case oldDone != nil:
		c.win = &window{pos: oldPos, leftover: []any{oldLimit, oldHead, oldDone, oldWinPos, oldWin}}
	case win != nil:
		w.after, c.win = done, &w
		w.snapshot, err = parseSnapshot(*win)
	}
	return c, err
}

// landmarks are pairs, in the order in which they were made: ids and heads ascend. Each says that the sequence head was
// read, and then the transaction id was taken. So a transaction with a higher id took it after the head was read; and
// since it takes its positions after its id (column order), they all lie above the head.
type landmarks struct {
	xids  []uint64
	heads []int64
}

// below returns the head above which every row of a transaction with this id or a higher one lies.
func (m landmarks) below(xid uint64) int64 {
	for i, x := range slices.Backward(m.xids) {
		if x < xid {
			return m.heads[i]
		}
	}
	return 0
}

// start is the position above which the rows lie that are visible in cur and not in done. Such a row's transaction
// either began after done was taken, or was running then and has ended since.
func (m landmarks) start(done, cur snapshot) int64 {
	pos := m.below(done.xmax)
	for _, xid := range done.running {
		if cur.sees(xid) {
			pos = min(pos, m.below(xid))
		}
	}
	return pos
}

// kept are the landmarks that a later window, which starts from done, can still need: one for each transaction that is
// running in done, one for those that begin after it, and those too young to say: of the change that stored the window
// that is done. With the one that is made now there are never more of them than running transactions, plus three.
func (m landmarks) kept(done snapshot) (kept landmarks) {
	for i, x := range m.xids {
		newest := i == len(m.xids)-1
		needed := x >= done.xmax || newest || m.xids[i+1] >= done.xmax
		for _, xid := range done.running {
			needed = needed || x < xid && (newest || m.xids[i+1] >= xid)
		}
		if needed {
			kept.xids, kept.heads = append(kept.xids, x), append(kept.heads, m.heads[i])
		}
	}
	return kept
}

// ScanStart is the position above which the rows lie that wait: visible in the snapshot now and not in done, with the
// landmarks of the cursor row.
func ScanStart(done, now string, xids []uint64, heads []int64) (int64, error) {
	published, err := parseSnapshot(done)
	if err != nil {
		return 0, err
	}
	current, err := parseSnapshot(now)
	if err != nil {
		return 0, err
	}
	return landmarks{xids, heads}.start(published, current), nil
}

// snapshot is a pg_snapshot: which transactions had ended when it was taken. It is compared and sent back in the
// server's own text; the numbers are for the few questions that are asked here.
type snapshot struct {
	text    string
	xmin    uint64   // all below have ended
	xmax    uint64   // none from here on had begun
	running []uint64 // those in between that had not ended, ascending
}

// parseSnapshot reads xmin:xmax:xip,xip.
func parseSnapshot(text string) (snapshot, error) {
	s := snapshot{text: text}
	ids := strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ',' })
	if strings.Count(text, ":") != 2 || len(ids) < 2 {
		return s, fmt.Errorf("parse snapshot %q: not three fields", text)
	}
	xids := make([]uint64, len(ids))
	for i, id := range ids {
		var err error
		if xids[i], err = strconv.ParseUint(id, 10, 64); err != nil {
			return s, fmt.Errorf("parse snapshot: %w", err)
		}
	}
	s.xmin, s.xmax, s.running = xids[0], xids[1], xids[2:]
	return s, nil
}

// sees is pg_visible_in_snapshot.
func (s snapshot) sees(xid uint64) bool {
	if xid < s.xmin {
		return true
	}
	_, running := slices.BinarySearch(s.running, xid)
	return xid < s.xmax && !running
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

// leftoverSQL reads what a restore into another cluster left to publish. The stored transaction ids are the old
// cluster's and mean nothing in this one's snapshots, but whether a row was visible in the old cursor's snapshots, done
// and the window that was open, can still be computed from stored values alone. Rows above the old head were inserted
// after that snapshot was taken; rows above the limit, the sequence head at the time of the rebase, are this cluster's.
// Until it is published no window is opened.
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
