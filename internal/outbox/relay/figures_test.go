package relay

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/outbox"
)

// How long TestUsualWaysInFigures writes. 0: not at all, since small figures prove nothing.
var figuresFor = flag.Duration("outbox.figures", 0, "print what the usual ways lose and invert in that time")

// TestUsualWaysInFigures prints the table of docs/adr/0001-read-the-outbox-by-snapshot-window.md. A transaction in
// another database is open for half of the time.
func TestUsualWaysInFigures(t *testing.T) {
	if *figuresFor == 0 {
		return
	}
	o, pool, other := newOutbox(t), newDatabase(t), newDatabase(t)
	execSQL(t, pool, `create index on outbox (xid, position);
		create table queue (position bigint primary key);
		create function enqueue() returns trigger language plpgsql as
			$$ begin insert into queue values (new.position); return new; end $$;
		create trigger enqueue after insert on outbox for each row execute function enqueue()`)
	r := newReader(t, pool, 100)
	ways := []*way{
		{name: "position > last", next: []nextRows{sqlWay(pool, byCursor)}},
		{name: "xid order below xmin", next: []nextRows{sqlWay(pool, byXid)}},
		{name: "skip locked, 3 relays", next: slices.Repeat([]nextRows{sqlWay(pool, byClaim)}, 3)},
		{name: "snapshot window", next: []nextRows{func(ctx context.Context) (rows []entry, err error) {
			_, err = r.step(ctx, func(rec record) { rows = append(rows, entryOf(rec.Topic, rec.Message())) })
			return rows, err
		}}},
	}

	committed := &times{at: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	var readers, writers errgroup.Group
	for _, w := range ways {
		for _, next := range w.next {
			readers.Go(func() error { return w.read(ctx, next) })
		}
	}
	end, stop := context.WithTimeout(t.Context(), *figuresFor)
	defer stop()
	for w := range 8 {
		rng := rand.New(rand.NewPCG(1, uint64(w)))
		writers.Go(func() error { return habitualWriter(end, o, pool, rng, committed) })
	}
	wait(t.Context(), *figuresFor/4)
	foreign := begin(t, other)
	_, err := foreign.Exec(t.Context(), `select pg_current_xact_id()`)
	require.NoError(t, err)
	wait(t.Context(), *figuresFor/2)
	require.NoError(t, foreign.Rollback(t.Context()))
	require.NoError(t, writers.Wait())
	cancel() // the readers read until no row is left
	require.NoError(t, readers.Wait())

	fmt.Printf("%-24s %8s %6s %10s %12s %12s\n", "way", "events", "lost", "inverted", "p50", "max")
	for _, w := range ways {
		fmt.Println(w.line(committed.at))
	}
	require.Contains(t, ways[3].line(committed.at), fmt.Sprintf("%8d %6d %10d", len(committed.at), 0, 0))
}

type times struct {
	mu sync.Mutex
	at map[string]time.Time
}

func habitualWriter(ctx context.Context, o *outbox.Outbox, pool *pgxpool.Pool, rng *rand.Rand, committed *times) error {
	for ctx.Err() == nil {
		var added []outbox.Added
		err := pgx.BeginFunc(context.WithoutCancel(ctx), pool, func(tx pgx.Tx) (err error) {
			if rng.IntN(3) == 0 {
				if _, err := tx.Exec(context.WithoutCancel(ctx), `select pg_current_xact_id()`); err != nil {
					return err
				}
				wait(ctx, time.Duration(rng.IntN(3))*time.Millisecond)
			}
			added, err = o.Add(context.WithoutCancel(ctx), tx, newEvent(fmt.Sprint(rng.IntN(40))))
			if rng.IntN(50) == 0 {
				return errors.New("undo")
			}
			return err
		})
		if err == nil {
			committed.mu.Lock()
			committed.at[added[0].ID] = time.Now()
			committed.mu.Unlock()
		}
	}
	return nil
}

type nextRows func(ctx context.Context) ([]entry, error)

type way struct {
	name string
	next []nextRows // of each relay
	mu   sync.Mutex
	wire []entry
	at   []time.Time
}

func (w *way) read(ctx context.Context, next nextRows) error {
	for left := 10; left > 0; { // other readers' transactions may still keep xmin low
		wait(context.WithoutCancel(ctx), 2*time.Millisecond)
		rows, err := next(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if ctx.Err() != nil && len(rows) == 0 {
			left--
		}
		w.mu.Lock()
		for _, e := range rows {
			w.wire, w.at = append(w.wire, e), append(w.at, time.Now())
		}
		w.mu.Unlock()
	}
	return nil
}

func (w *way) line(committed map[string]time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, newest, inverted := map[string]bool{}, map[string]int64{}, 0
	var waits []time.Duration
	for i, e := range w.wire {
		if at, ok := committed[e.ID]; ok && !seen[e.ID] {
			waits = append(waits, max(0, w.at[i].Sub(at)))
		}
		seen[e.ID] = true
		if e.Version < newest[e.Key] {
			inverted++
		}
		newest[e.Key] = max(newest[e.Key], e.Version)
	}
	lost := 0
	for id := range committed {
		if !seen[id] {
			lost++
		}
	}
	slices.Sort(waits)
	return fmt.Sprintf("%-24s %8d %6d %10d %12s %12s", w.name, len(committed), lost, inverted,
		waits[len(waits)/2].Round(100*time.Microsecond), waits[len(waits)-1].Round(time.Millisecond))
}

const (
	rowsSQL = `with last as (select $1::text::xid8 as xid, $2::bigint as position), claimed as (
			delete from queue where $3 and position in (select position from queue order by position limit 100
				for update skip locked) returning position)
		select topic, key, event_id::text, version, xid::text, position from outbox where `
	byCursor = rowsSQL + `position > (select position from last) order by position limit 100`
	byXid    = rowsSQL + `(xid, position) > (select xid, position from last)
		and xid < pg_snapshot_xmin(pg_current_snapshot()) order by outbox.xid, position limit 100`
	byClaim = rowsSQL + `position in (select position from claimed) order by position`
)

func sqlWay(pool *pgxpool.Pool, sql string) nextRows {
	xid, position := "0", int64(0)
	return func(ctx context.Context) (list []entry, err error) {
		rows, _ := pool.Query(ctx, sql, xid, position, sql == byClaim)
		var e entry
		var lastXid string
		var last int64
		_, err = pgx.ForEachRow(rows, []any{&e.Topic, &e.Key, &e.ID, &e.Version, &lastXid, &last}, func() error {
			list = append(list, e)
			return nil
		})
		if len(list) > 0 && sql != byClaim {
			xid, position = lastXid, last
		}
		return list, err
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
