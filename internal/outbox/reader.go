package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
)

// reader finds the rows to publish and remembers what is published. It knows nothing of publishing: whoever uses it
// opens a window, reads its pages, says how far they are out, and closes it.
//
//	poll  ->  page ... page  ->  store (before the first row is sent)  ->  advance ...  ->  finish
//
// It works on one session in autocommit: a snapshot taken inside a transaction that has an id shows that very id as
// ended. After any error the reader and its session are to be thrown away; the cursor row knows how to go on.
type reader struct {
	conn  *pgx.Conn
	term  *term
	pages *pager
	cursor
}

var (
	// errDeposed: the cursor row has another epoch. Somebody else leads, and has changed or will change the cursor.
	errDeposed = errors.New("outbox: another relay leads")
	// errDiverged: the epoch is ours, the generation is not. A change whose outcome we were not told has happened.
	errDiverged = errors.New("outbox: the cursor changed behind this session")
	// errWentBack: the server has given out fewer transaction ids than it had, so it is not the server it was.
	errWentBack = errors.New("outbox: transaction ids went back")
	// errSessionChanged: another backend answers. Somebody pools transactions, and no setting of ours is in force.
	errSessionChanged = errors.New("outbox: the session's backend changed")
)

func newReader(ctx context.Context, conn *pgx.Conn, t *term, pages *pager) (*reader, error) {
	c, err := loadCursor(ctx, conn)
	if err != nil {
		return nil, err
	}
	return &reader{conn: conn, term: t, pages: pages, cursor: c}, nil
}

// pollSQL takes the snapshot first and reads the head second: it is one statement, and its snapshot is taken before it
// runs. So a row that is visible in the snapshot lies at or below the head. It needs no transaction id: one taken
// before the head is read would make a landmark that promises too much. pg_sequence_last_value reads under the
// sequence's lock; "select last_value" would read a page that nextval is just writing, and see the future.
const pollSQL = `
select pg_current_snapshot()::text, coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0), pg_backend_pid()`

// poll (steps 1, 2 and 8) returns the window to publish next, nil if no transaction has ended since the last one. A
// window that a predecessor left open comes first, as it was: its rows may be half out.
func (r *reader) poll(ctx context.Context) (*window, error) {
	if r.win != nil {
		return r.win, nil
	}
	fault.Here("relay.poll.before")
	var (
		text string
		pid  uint32
		w    window
	)
	if err := r.conn.QueryRow(ctx, pollSQL).Scan(&text, &w.head, &pid); err != nil {
		return nil, fmt.Errorf("poll: %w", err)
	}
	fault.Here("relay.poll.after")
	if pid != r.conn.PgConn().PID() {
		return nil, errSessionChanged
	}
	if text == r.done.text {
		return nil, nil
	}
	var err error
	if w.snapshot, err = parseSnapshot(text); err != nil {
		return nil, err
	}
	if w.xmax < r.done.xmax {
		return nil, fmt.Errorf("%w: from %d to %d", errWentBack, r.done.xmax, w.xmax)
	}
	w.pos = r.marks.start(r.done, w.snapshot)
	return &w, nil
}

// pageSQL has no upper bound. Both snapshots are parameters of their own type: as text they would be parsed per row.
const pageSQL = `
select ` + columns + `
from public.outbox o
where o.position > $1
    and not pg_visible_in_snapshot(o.xid, $2::pg_snapshot)
    and pg_visible_in_snapshot(o.xid, $3::pg_snapshot)
order by o.position
limit $4`

// page (step 3) reads the window's rows above a position.
func (r *reader) page(ctx context.Context, w *window, above int64) (page, error) {
	fault.Here("relay.page.before")
	rows, err := r.conn.Query(ctx, pageSQL, binaryResults, above, r.done.text, w.text, r.pages.limit)
	if err != nil {
		return page{}, fmt.Errorf("read page: %w", err)
	}
	p, err := r.pages.collect(rows)
	fault.Here("relay.page.after")
	return p, err
}

// skip (step 4) is for a window without rows: foreign transactions ended. Only memory learns of it.
func (r *reader) skip(w *window) { r.done = w.snapshot }

const storeSQL = `
update public.outbox_cursor
set win = $4::pg_snapshot, win_head = $5, win_pos = $6, generation = generation + 1,
    lease_until = clock_timestamp() + $7 * interval '1 microsecond'
where name = $1 and epoch = $2 and generation = $3`

// store (step 5) makes the window the one that a restart goes on with. It has to be done before the first row is sent:
// its commit reaches the disk after those of the window's writers, so nothing that was sent can be undone by a crash of
// a server that acknowledges commits early; and whoever takes over repeats this window, not a larger one.
func (r *reader) store(ctx context.Context, w *window) error {
	if r.win == w {
		return nil // left open by a predecessor
	}
	fault.Here("relay.store.before")
	err := r.change(ctx, nil, storeSQL, w.text, w.head, w.pos, r.term.micros())
	fault.Here("relay.store.after")
	if err != nil {
		return fmt.Errorf("store window: %w", err)
	}
	r.win = w
	return nil
}

const advanceSQL = `
update public.outbox_cursor
set win_pos = $4, generation = generation + 1, lease_until = clock_timestamp() + $5 * interval '1 microsecond'
where name = $1 and epoch = $2 and generation = $3 and win is not null`

// advance (step 6) records that the open window is published up to a position. What is written by also, if anything,
// shares the transaction: rows that were passed without being sent.
func (r *reader) advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error {
	fault.Here("relay.advance.before")
	err := r.change(ctx, also, advanceSQL, pos, r.term.micros())
	fault.Here("relay.advance.after")
	if err != nil {
		return fmt.Errorf("advance window: %w", err)
	}
	r.win.pos = pos
	return nil
}

const finishSQL = `
update public.outbox_cursor
set done = win, head = win_head, win = null, win_head = null, win_pos = null,
    mark_x = $4::xid8[] || pg_current_xact_id(), mark_h = $5::bigint[] || win_head,
    generation = generation + 1, lease_until = clock_timestamp() + $6 * interval '1 microsecond'
where name = $1 and epoch = $2 and generation = $3 and win is not null
returning pg_current_xact_id()`

// finish (step 7) closes the window: everything visible in it is published or held. The transaction that says so also
// makes a landmark of its own id, which it took long after the window's head was read.
func (r *reader) finish(ctx context.Context, also func(pgx.Tx) error) error {
	fault.Here("relay.finish.before")
	kept := r.marks.kept(r.win.snapshot)
	xids, heads := kept.columns()
	var xid uint64
	err := r.changeReturning(ctx, also, &xid, finishSQL, xids, heads, r.term.micros())
	fault.Here("relay.finish.after")
	if err != nil {
		return fmt.Errorf("close window: %w", err)
	}
	r.done, r.head, r.marks = r.win.snapshot, r.win.head, append(kept, mark{xid, r.win.head})
	r.win = nil
	return nil
}
