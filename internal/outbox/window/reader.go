package window

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/fault"
)

// Reader finds the rows to publish and records what is published. It knows nothing of publishing: its caller opens a
// window, reads its pages, says how far they are out, and closes it.
//
//	Next  ->  Page ... Page, Advance ...  ->  Finish, or the Next of another round
//
// It works on one session in autocommit: a snapshot taken inside a transaction that has an id shows that very id as
// ended. After any error the reader and its session are to be thrown away; the cursor row knows how to go on.
type Reader struct {
	conn  *pgx.Conn
	term  *Term
	pages *Pager
	cursor
}

// Term is one period of leadership: every change of the cursor repeats its epoch and extends its lease. The lease is on
// the database's clock. This process's clock is only asked how much of it is left for sure: it is counted from before
// the statement that extended it was sent.
type Term struct {
	Epoch int64
	Lease time.Duration
	Until time.Time // by this process's monotonic clock, at the earliest
}

// Extended says that a statement which was sent at that time has extended the lease.
func (t *Term) Extended(sent time.Time) { t.Until = sent.Add(t.Lease) }

// Remaining is how much of the lease is left for sure.
func (t *Term) Remaining() time.Duration { return time.Until(t.Until) }

var (
	// ErrDeposed means that the cursor row has another epoch: another relay leads, and changes the cursor.
	ErrDeposed = errors.New("outbox: another relay leads")
	// ErrDiverged means that the epoch is ours, and the generation is not: a change has happened whose outcome this
	// session was not told.
	ErrDiverged = errors.New("outbox: the cursor changed behind this session")
	// errWentBack: the server has given out fewer transaction ids than it had, so it is not the server it was.
	errWentBack = errors.New("outbox: transaction ids went back")
	// errSessionChanged: another backend answers. A pooler of transactions stands in between, and no setting is in force.
	errSessionChanged = errors.New("outbox: the session's backend changed")
)

// NewReader loads the cursor, on the session of a relay that leads.
func NewReader(ctx context.Context, conn *pgx.Conn, term *Term, pages *Pager) (*Reader, error) {
	c, err := loadCursor(ctx, conn)
	if err != nil {
		return nil, err
	}
	return &Reader{conn: conn, term: term, pages: pages, cursor: c}, nil
}

// Clusters are the one that the stored transaction ids belong to, 0 if it is not known, and the one that answers. If
// they differ the database was restored: [Reader.Rebase] comes first.
func (r *Reader) Clusters() (stored, here int64) { return r.sysid, r.here }

// PublishedTo is a position at or below which every row is published, as long as no restore has left any.
func (r *Reader) PublishedTo() int64 {
	if r.win != nil && r.win.leftover != nil {
		return 0
	}
	return r.marks.below(r.done.xmin) // all rows that done does not see lie above
}

// Next opens what is to be published next and returns its first page: what a restore left, the window that a
// predecessor left open, as it was, or a new one. It reports false if no row was committed since the last one.
//
// With through, what is open is published. It is then closed by the change of the cursor that opens what is next: while
// events keep coming a window costs one commit and not two. If no row was committed it is open as before.
func (r *Reader) Next(ctx context.Context, through bool) (first Page, found bool, err error) {
	after := r.done
	switch {
	case r.win == nil:
	case !through: // a predecessor left it open: its rows may be half out
		first, err = r.Page(ctx, r.win.pos)
		return first, err == nil, err
	case r.win.leftover != nil:
		if err := r.Finish(ctx, nil); err != nil {
			return Page{}, false, err
		}
	default:
		after = r.win.snapshot
	}
	w, err := r.poll(ctx, after)
	if w == nil || err != nil {
		return Page{}, false, err
	}
	first, err = r.readPage(ctx, w, w.pos)
	switch {
	case err != nil:
		return Page{}, false, err
	case len(first.Records) > 0:
		err = r.store(ctx, w)
		return first, err == nil, err
	case r.win == nil:
		r.done = w.snapshot // transactions without events have ended: only memory learns of it
	}
	return Page{}, false, nil
}

// Page reads the rows above a position of what is open.
func (r *Reader) Page(ctx context.Context, above int64) (Page, error) {
	return r.readPage(ctx, r.win, above)
}

// pollSQL takes the snapshot first and reads the head second: it is one statement, and its snapshot is taken before it
// runs. So a row that is visible in the snapshot lies at or below the head. It needs no transaction id: one taken
// before the head is read would make a landmark that promises too much. pg_sequence_last_value reads under the
// sequence's lock; "select last_value" would read a page that nextval is just writing, and see the future.
const pollSQL = `
select pg_current_snapshot()::text, coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0), pg_backend_pid()`

// poll returns the window that follows a snapshot, nil if no transaction has ended since.
func (r *Reader) poll(ctx context.Context, after snapshot) (*window, error) {
	fault.Here("relay.poll.before")
	var (
		text string
		pid  uint32
	)
	w := window{after: after.text}
	if err := r.conn.QueryRow(ctx, pollSQL).Scan(&text, &w.head, &pid); err != nil {
		return nil, fmt.Errorf("poll: %w", err)
	}
	fault.Here("relay.poll.after")
	if pid != r.conn.PgConn().PID() {
		return nil, errSessionChanged
	}
	if text == after.text {
		return nil, nil
	}
	var err error
	if w.snapshot, err = parseSnapshot(text); err != nil {
		return nil, err
	}
	if w.xmax < after.xmax {
		return nil, fmt.Errorf("%w: from %d to %d", errWentBack, after.xmax, w.xmax)
	}
	w.pos = r.marks.start(after, w.snapshot)
	return &w, nil
}

// pageSQL has no upper bound. Both snapshots are parameters of their own type: as text they would be parsed per row.
const pageSQL = `
select ` + Columns + `
from public.outbox o
where o.position > $1
    and not pg_visible_in_snapshot(o.xid, $2::pg_snapshot)
    and pg_visible_in_snapshot(o.xid, $3::pg_snapshot)
order by o.position
limit $4`

func (r *Reader) readPage(ctx context.Context, w *window, above int64) (Page, error) {
	fault.Here("relay.page.before")
	sql, args := pageSQL, []any{above, w.after, w.text}
	if w.leftover != nil {
		sql, args = leftoverSQL, append([]any{above}, w.leftover...)
	}
	p, err := r.pages.Read(ctx, r.conn, sql, args...)
	fault.Here("relay.page.after")
	return p, err
}

const storeSQL = `
update public.outbox_cursor
set win = $5::pg_snapshot, win_head = $6, win_pos = $7, ` + guardSQL

// store makes the window the one that a restart goes on with, and closes what is open. It has to be done before the
// first row is sent: its commit reaches the disk after those of the window's writers, so nothing that was sent can be
// undone by a crash of a server that acknowledges commits early; and a successor repeats this window, not a larger one.
func (r *Reader) store(ctx context.Context, w *window) (err error) {
	if r.win == nil {
		fault.Here("relay.store.before")
		if _, err = r.change(ctx, nil, storeSQL, w.text, w.head, w.pos); err == nil {
			r.win = w
		}
		fault.Here("relay.store.after")
	} else {
		fault.Here("relay.finish_and_store.before")
		err = r.close(ctx, nil, w)
		fault.Here("relay.finish_and_store.after")
	}
	if err != nil {
		return fmt.Errorf("store window: %w", err)
	}
	return nil
}

// advanceSQL moves the position of what is open: of a window, or of what a restore left. There is never both.
const advanceSQL = `
update public.outbox_cursor
set win_pos = case when win is not null then $5::bigint end, old_pos = case when old_done is not null then $5 end, ` +
	guardSQL

// Advance records that what is open is published up to a position. What is written by also, if anything, shares the
// transaction: rows that were passed without being sent.
func (r *Reader) Advance(ctx context.Context, pos int64, also func(pgx.Tx) error) error {
	fault.Here("relay.advance.before")
	_, err := r.change(ctx, also, advanceSQL, pos)
	fault.Here("relay.advance.after")
	if err != nil {
		return fmt.Errorf("advance window: %w", err)
	}
	r.win.pos = pos
	return nil
}

// Finish closes what is open: everything visible in it is published, or passed with also. The transaction that says so
// also makes a landmark of its own id, which it took long after the window's head was read.
func (r *Reader) Finish(ctx context.Context, also func(pgx.Tx) error) (err error) {
	switch {
	case r.win == nil:
		return nil
	case r.win.leftover != nil:
		if _, err = r.change(ctx, also, finishLeftoverSQL); err == nil {
			r.win = nil
		}
	default:
		fault.Here("relay.finish.before")
		err = r.close(ctx, also, nil)
		fault.Here("relay.finish.after")
	}
	if err != nil {
		return fmt.Errorf("close window: %w", err)
	}
	return nil
}

// closeSQL closes the window that is open, and opens the next one if there is any. It makes a landmark of its own id
// and of the window's head, or of the next one's: it was read before the change took its id, too, so it makes the
// better landmark of the two.
const closeSQL = `
update public.outbox_cursor
set done = win, head = win_head, mark_x = $5::xid8[] || pg_current_xact_id(), mark_h = $6::bigint[] || $7::bigint,
    win = $8::pg_snapshot, win_head = $9, win_pos = $10, ` + guardSQL

func (r *Reader) close(ctx context.Context, also func(pgx.Tx) error, next *window) error {
	kept, head := r.marks.kept(r.win.snapshot), r.win.head
	opened := []any{nil, nil, nil}
	if next != nil {
		head, opened = next.head, []any{next.text, next.head, next.pos}
	}
	xid, err := r.change(ctx, also, closeSQL, append([]any{kept.xids, kept.heads, head}, opened...)...)
	if err == nil {
		r.marks = landmarks{append(kept.xids, xid), append(kept.heads, head)}
		r.done, r.win = r.win.snapshot, next
	}
	return err
}

// guardSQL ends every change of the cursor: it is made in the epoch that leads and on the state that is known, and it
// extends the lease.
const guardSQL = `generation = generation + 1, lease_until = clock_timestamp() + $4 * interval '1 microsecond'
where name = $1 and epoch = $2 and generation = $3
returning pg_current_xact_id()`

// change runs an update that ends in guardSQL, with parameters from $5 on, and returns its transaction's id.
func (r *Reader) change(
	ctx context.Context, also func(pgx.Tx) error, sql string, args ...any,
) (xid uint64, err error) {
	sent := time.Now()
	args = append([]any{CursorName, r.term.Epoch, r.generation, r.term.Lease.Microseconds()}, args...)
	update := func(q DB) error {
		err := q.QueryRow(ctx, sql, args...).Scan(&xid)
		if errors.Is(err, pgx.ErrNoRows) {
			return r.whyNot(ctx, q)
		}
		return err
	}
	if also == nil {
		err = update(r.conn)
	} else {
		// The cursor first: its row lock keeps a successor out until what follows is committed too.
		err = pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
			if err := update(tx); err != nil {
				return err
			}
			err := also(tx)
			fault.Here("relay.change.in_tx")
			return err
		})
	}
	if err != nil {
		return 0, err
	}
	r.generation++
	r.term.Extended(sent)
	return xid, nil
}

const epochSQL = `select epoch from public.outbox_cursor where name = $1`

// whyNot says why an update of the cursor found no row.
func (r *Reader) whyNot(ctx context.Context, q DB) error {
	var epoch int64
	if err := q.QueryRow(ctx, epochSQL, CursorName).Scan(&epoch); err != nil {
		return fmt.Errorf("read epoch: %w", err)
	}
	if epoch != r.term.Epoch {
		return ErrDeposed
	}
	return ErrDiverged
}
