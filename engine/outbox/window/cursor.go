package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
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
	head       int64
	marks      landmarks
	win        *window   // the open one, if any
	leftover   *leftover // of a restore, if any
}

// window is the rows that are visible in it and not in the one before. They are published in the order of their
// positions.
type window struct {
	snapshot
	after string // the snapshot before it: done, once it is stored
	head  int64  // the sequence head, read after the snapshot was taken: none of its rows lies above
	pos   int64  // published up to here
}

// IsPublished is the SQL condition that the cursor c has passed the row o. Held and discarded rows are passed and not
// published. Of what was inserted before a restore only the old cluster's snapshots tell, as long as it is not all out.
const IsPublished = `case when o.position > c.base then pg_visible_in_snapshot(o.xid, c.done)
        or coalesce(o.position <= c.win_pos and pg_visible_in_snapshot(o.xid, c.win), false)
    else c.old_done is null or o.position <= c.old_pos
        or o.position <= c.old_head and pg_visible_in_snapshot(o.xid, c.old_done)
        or coalesce(o.position <= c.old_win_pos and pg_visible_in_snapshot(o.xid, c.old_win), false) end`

const loadSQL = `
select generation, coalesce(sysid, 0), (select system_identifier from pg_control_system()),
    done::text, head, win::text, win_head, win_pos, mark_x, mark_h,
    old_done::text, old_head, old_win::text, old_win_pos, old_limit, old_pos
from public.outbox_cursor where name = $1`

// loadCursor reads what is published.
func loadCursor(ctx context.Context, conn *pgx.Conn) (cursor, error) {
	var (
		c                                 cursor
		done                              string
		win, oldDone, oldWin              *string
		winHead, winPos                   *int64
		oldHead, oldPos, oldWinPos, limit *int64
		xids                              []uint64
		heads                             []int64
	)
	err := conn.QueryRow(ctx, loadSQL, CursorName).Scan(&c.generation, &c.sysid, &c.here, &done, &c.head,
		&win, &winHead, &winPos, &xids, &heads, &oldDone, &oldHead, &oldWin, &oldWinPos, &limit, &oldPos)
	if err != nil {
		return c, fmt.Errorf("load cursor: %w", err)
	}
	c.marks = landmarksOf(xids, heads)
	if c.done, err = parseSnapshot(done); err != nil {
		return c, err
	}
	if win != nil {
		if winHead == nil || winPos == nil {
			return c, errors.New("load cursor: an open window without head or position")
		}
		c.win = &window{after: done, head: *winHead, pos: *winPos}
		if c.win.snapshot, err = parseSnapshot(*win); err != nil {
			return c, err
		}
	}
	if oldDone != nil {
		if oldHead == nil || limit == nil || oldPos == nil {
			return c, errors.New("load cursor: an unfinished restore without head, limit or position")
		}
		c.leftover = &leftover{
			done: *oldDone, head: *oldHead, win: oldWin, winPos: oldWinPos, limit: *limit, pos: *oldPos,
		}
	}
	return c, nil
}
