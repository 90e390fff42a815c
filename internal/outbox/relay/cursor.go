package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/fault"
)

// cursor is the row of outbox_cursor, loaded once per session.
type cursor struct {
	conn            *pgx.Conn
	epoch           int64
	limit, maxLimit int // rows of a page; limit is lower while rows are large

	done   snapshot // all rows that are visible in it are published or held
	open   *window
	stored int64 // as the row has it
	marks  landmarks
	head   int64

	upTo int64 // the last position of the page that was stored
	ends *ends
}

// window is the rows that are visible in its snapshot and not in the one before.
type window struct {
	snapshot
	after    snapshot
	position int64 // published up to here, from the scan's start on
	complete bool
}

type record struct {
	Position int64
	event.Event

	end    *end // nil: the publisher has no log
	resent bool // by a pass
	lost   bool // it has no row
}

func (r *record) message() *message.Message {
	m := r.Message()
	m.Metadata[event.HeaderPosition] = strconv.FormatInt(r.Position, 10)
	return m
}

type key struct{ Topic, Key string }

func (r *record) key() key { return key{r.Topic, r.Key} }

var (
	errDeposed = errors.New("outbox: another relay leads")
	// errXIDsWentBack means that the server's transaction ids are lower than before: it is a different server.
	errXIDsWentBack = errors.New("outbox: transaction ids went back")
)

// leadSQL raises the epoch: no statement of a former leader's session changes the cursor afterwards.
const leadSQL = `
update public.outbox_cursor set epoch = epoch + 1, leader = $1
returning epoch, done::text, mark_x, mark_h, greatest(head, (select max(position) from public.outbox)),
    win::text, coalesce(win_pos, 0)`

func (c *cursor) lead(ctx context.Context, name string) error {
	if err := c.adoptCluster(ctx); err != nil {
		return err
	}
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	var open *snapshot
	var position int64
	err := c.conn.QueryRow(ctx, leadSQL, name).
		Scan(&c.epoch, &c.done, &c.marks.xids, &c.marks.heads, &c.head, &open, &position)
	if err != nil {
		return fmt.Errorf("load cursor: %w", err)
	}
	if open != nil {
		c.open, c.stored = &window{snapshot: *open, after: c.done, position: position}, position
	}
	return nil
}

// adoptSQL writes some 100,000 rows a second, so a usual timeout would end it in a large outbox.
const adoptSQL = `
set local statement_timeout = 0;
select public.outbox_adopt_cluster() from public.outbox_cursor
where sysid is distinct from (select system_identifier from pg_control_system())`

const adoptTimeout = 4 * time.Hour

func (c *cursor) adoptCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
	defer cancel()
	if _, err := c.conn.Exec(ctx, adoptSQL); err != nil {
		return fmt.Errorf("adopt the rows of another cluster: %w", err)
	}
	return nil
}

type now struct {
	snapshot
	head    int64
	paused  bool
	nextDue *time.Duration // nil: none is scheduled
}

// pollSQL runs in autocommit: inside a transaction with an id the snapshot would show that transaction as ended. The
// snapshot is taken before the statement runs, so a visible row lies at or below the head. "select last_value" would
// read a number that nextval is about to give out.
const pollSQL = `
select pg_current_snapshot()::text, coalesce(pg_sequence_last_value('public.outbox_position_seq'), 0), pg_backend_pid(),
    paused_at is not null, (select min(due_at) - clock_timestamp() from public.outbox_scheduled)
from public.outbox_cursor`

func (c *cursor) poll(ctx context.Context) (n now, err error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	var pid uint32
	err = c.conn.QueryRow(ctx, pollSQL).Scan(&n.snapshot, &n.head, &pid, &n.paused, &n.nextDue)
	if err == nil && pid != c.conn.PgConn().PID() {
		err = errPooler
	}
	if newest := c.newest(); err == nil && n.xmax < newest.xmax {
		err = fmt.Errorf("%w: from %d to %d", errXIDsWentBack, newest.xmax, n.xmax)
	}
	if err == nil && n.head < c.head {
		n.head, err = c.repairSequence(ctx)
	}
	if err != nil {
		return n, fmt.Errorf("poll: %w", err)
	}
	c.head = n.head
	return n, nil
}

const setNoMarks = `mark_x = '{0}', mark_h = '{0}'`

const repairSQL = `select public.outbox_repair_sequence($1)`

// repairSequence forgets the landmarks first: without them a low sequence does no harm after a crash.
func (c *cursor) repairSequence(ctx context.Context) (head int64, err error) {
	if _, _, err := c.change(ctx, nil, nil, setNoMarks); err != nil {
		return 0, fmt.Errorf("forget landmarks: %w", err)
	}
	c.marks = landmarks{xids: []uint64{0}, heads: []int64{0}}
	if err := c.conn.QueryRow(ctx, repairSQL, c.head).Scan(&head); err != nil {
		return 0, fmt.Errorf("repair sequence: %w", err)
	}
	return head, nil
}

func (c *cursor) newest() snapshot {
	if c.open != nil {
		return c.open.snapshot
	}
	return c.done
}

// next returns the open window, unless it is published, or the one behind it. nil: no transaction has ended since.
func (c *cursor) next(n now) *window {
	if c.open != nil && !c.open.complete {
		return c.open
	}
	after := c.newest()
	if n.text == after.text {
		return nil
	}
	return &window{snapshot: n.snapshot, after: after, position: c.marks.start(after, n.snapshot)}
}

// publishedTo returns a position at or below which every row is published or held.
func (c *cursor) publishedTo() int64 {
	return c.marks.below(c.done.xmin) // all rows that done does not see lie above
}

const columns = `o.position, o.event_id::text, o.source, o.event_type, o.topic, o.key, o.version,
    coalesce(o.data_schema, ''), o.occurred_at, o.payload, o.headers`

// pageSQL takes both snapshots as parameters of their own type: as text they would be parsed per row.
const pageSQL = `
select ` + columns + `
from public.outbox o
where o.position > $1
    and not pg_visible_in_snapshot(o.xid, $2::pg_snapshot)
    and pg_visible_in_snapshot(o.xid, $3::pg_snapshot)
    and not exists (select from public.outbox_discarded d where d.position = o.position)
order by o.position
limit $4`

// pageBytes bounds the payloads of a page. One larger record is a page of its own.
const pageBytes = 8 << 20

func (c *cursor) read(ctx context.Context, sql string, args ...any) (page []record, more bool, err error) {
	ctx, cancel := withStatementTimeout(ctx)
	defer cancel()
	page, bytes, err := readRecords(ctx, c.conn, sql, append(args, c.limit)...)
	if err != nil {
		return nil, false, err
	}
	more = len(page) == c.limit || bytes >= pageBytes
	switch {
	case bytes >= pageBytes:
		c.limit = len(page)
	case bytes < pageBytes/2:
		c.limit = min(2*c.limit, c.maxLimit)
	}
	return page, more, nil
}

func readRecords(ctx context.Context, db DB, sql string, args ...any) (page []record, bytes int, err error) {
	rows, _ := db.Query(ctx, sql, args...) // its error is that of the rows
	defer rows.Close()
	for bytes < pageBytes && rows.Next() {
		r, err := pgx.RowToStructByPos[record](rows)
		if err != nil {
			return nil, 0, fmt.Errorf("read row: %w", err)
		}
		page = append(page, r)
		bytes += len(r.Data)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("read page: %w", err)
	}
	return page, bytes, nil
}

const setWindow = `
    done = $3::pg_snapshot, win = $4::pg_snapshot, win_pos = $5,
    mark_x = $6::xid8[] || case when $8 then array[pg_current_xact_id()] else '{}' end,
    mark_h = $7::bigint[] || case when $8 then array[$9::bigint] else '{}' end, head = $9, up_to = $10`

// storePage makes w the open window, published up to its position; nil: none is open. It comes before the page is sent.
// A former leader gets errDeposed.
func (c *cursor) storePage(
	ctx context.Context, w *window, page []record, also *pgx.Batch,
) (paused bool, err error) {
	next := *c
	if len(page) > 0 {
		next.upTo = page[len(page)-1].Position
	}
	if c.open != nil && w != c.open {
		next.done = c.open.snapshot
	}
	next.open = w
	makesMark := w != c.open // its id is taken here, after the head was read
	if makesMark {
		next.marks = c.marks.kept(next.done)
	}
	args := []any{next.done.text, nil, nil, next.marks.xids, next.marks.heads, makesMark, c.head, next.upTo}
	if w != nil {
		args[1], args[2] = w.text, w.position
		next.stored = w.position
	}
	fault.Here("relay.store.before")
	xid, paused, err := c.change(ctx, also, c.ends.planEnds(page), setWindow, args...)
	fault.Here("relay.store.after")
	if err != nil {
		return false, fmt.Errorf("store cursor: %w", err)
	}
	if makesMark {
		next.marks.xids, next.marks.heads = append(next.marks.xids, xid), append(next.marks.heads, c.head)
	}
	*c = next
	return paused, nil
}

// guarded runs statements if this relay leads. A successor waits until they have ended.
func (c *cursor) guarded(ctx context.Context, statements *pgx.Batch, ends storedEnds) error {
	_, _, err := c.change(ctx, statements, ends, `epoch = epoch`)
	return err
}

const changeSQL = `
update public.outbox_cursor set ends = coalesce($2::jsonb, ends), %s
where epoch = $1 returning pg_current_xact_id(), paused_at is not null`

// perStatement is added to the timeout for each statement of a batch: a heal may have a million.
const perStatement = 10 * time.Millisecond

// change sets columns of the cursor row if this relay leads, with other statements in one transaction. The arguments
// begin with $3.
func (c *cursor) change(
	ctx context.Context, also *pgx.Batch, ends storedEnds, set string, args ...any,
) (xid uint64, paused bool, err error) {
	if also == nil {
		also = &pgx.Batch{}
	}
	limit := statementTimeout + time.Duration(also.Len())*perStatement
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, errNoAnswer)
	defer cancel()
	sql, args := fmt.Sprintf(changeSQL, set), append([]any{c.epoch, ends}, args...)
	if also.Len() == 0 {
		err = c.conn.QueryRow(ctx, sql, args...).Scan(&xid, &paused)
	} else {
		err = pgx.BeginFunc(ctx, c.conn, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, sql, args...).Scan(&xid, &paused); err != nil {
				return err
			}
			return tx.SendBatch(ctx, also).Close()
		})
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = errDeposed
	}
	if err != nil {
		return 0, false, err
	}
	for p, stored := range ends {
		c.ends.of[p].stored = stored
	}
	return xid, paused, nil
}

// IsPublished is the SQL condition that the cursor c has passed the row o, published, held or discarded.
const IsPublished = `(pg_visible_in_snapshot(o.xid, c.done)
    or coalesce(o.position <= c.win_pos and pg_visible_in_snapshot(o.xid, c.win), false))`

// State is the SQL expression of the row o's state: published, waiting, held or discarded.
const State = `case when exists (select from public.outbox_held h where h.position = o.position) then 'held'
    when exists (select from public.outbox_discarded d where d.position = o.position) then 'discarded'
    when ` + IsPublished + ` then 'published' else 'waiting' end`
