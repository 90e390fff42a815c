package relay

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/test/pgtest"
)

// The locks on which a writer stalls, on either side of its transaction id.
const beforeXid, afterXid = 1, 2

const stallingSQL = `
create function public.stalling_xid() returns xid8 language plpgsql as $$
declare x xid8;
    before bigint := coalesce(nullif(current_setting('stall.before', true), ''), '1');
    after bigint := coalesce(nullif(current_setting('stall.after', true), ''), '2');
begin
    perform pg_advisory_lock_shared(before); perform pg_advisory_unlock_shared(before);
    x := pg_current_xact_id();
    perform pg_advisory_lock_shared(after); perform pg_advisory_unlock_shared(after);
    return x;
end $$;
drop table public.outbox;`

const restOfTableSQL = `
    event_id uuid, event_type text, source text, topic text, key text, version bigint, data_schema text,
    occurred_at timestamptz, headers jsonb, payload bytea, primary key (position)) partition by range (position);
create table public.outbox_1 partition of public.outbox for values from (1) to (1000000)`

const (
	xidColumnSQL      = `xid xid8 not null default public.stalling_xid(),`
	positionColumnSQL = `position bigint not null generated always as identity,`
)

// TestOnAQuietServer has its own server: landmarks reach further back while any transaction runs, so other tests'
// transactions could save the rows that must be lost.
func TestOnAQuietServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Durable(t)
	admin, err := pgx.Connect(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	for _, sql := range []string{
		`alter system set autovacuum = off`, `alter system set fsync = off`, `select pg_reload_conf()`,
	} {
		_, err := admin.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	_, err = admin.Exec(t.Context(), `create database empty`)
	require.NoError(t, err)
	migrated(t, server.DSN("empty")).Close()
	database := func(t *testing.T) *pgxpool.Pool {
		t.Helper()
		name := fmt.Sprintf("quiet_%d", time.Now().UnixNano())
		_, err := admin.Exec(t.Context(), `create database `+name+` template empty strategy file_copy`)
		require.NoError(t, err)
		return openPool(t, server.DSN(name))
	}
	t.Run("column order", func(t *testing.T) { columnOrderDecidesWhetherAStalledWriterIsLost(t, database) })
	t.Run("sequence cache", func(t *testing.T) { sequenceCacheLosesRows(t, database) })
	t.Run("random stalls", func(t *testing.T) { randomStallsLoseNothing(t, database(t)) })
}

// With position first, a stopped writer has a low number and later gets a high id: a landmark in between hides the row
// for ever.
func columnOrderDecidesWhetherAStalledWriterIsLost(t *testing.T, database func(*testing.T) *pgxpool.Pool) {
	for _, c := range []struct {
		name, columns string
		stall         int
		found         bool
	}{
		{"xid first, stalled before it", xidColumnSQL + positionColumnSQL, beforeXid, true},
		{"xid first, stalled between them", xidColumnSQL + positionColumnSQL, afterXid, true},
		{"position first, stalled between them", positionColumnSQL + xidColumnSQL, beforeXid, false},
		{"position first, stalled after them", positionColumnSQL + xidColumnSQL, afterXid, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := database(t)
			execSQL(t, pool, stallingSQL+`create table public.outbox (`+c.columns+restOfTableSQL)
			r := newReader(t, pool, 10)
			writer, others := acquireConn(t, pool), acquireConn(t, pool)
			insertUnstalled(t, others) // the first number is logged, which takes a transaction id
			require.Len(t, read(t, r), 1)

			release := stall(t, pool, c.stall)
			done := make(chan error, 1)
			go func() {
				_, err := writer.Exec(context.WithoutCancel(t.Context()), insertRawSQL)
				done <- err
			}()
			awaitAdvisoryWait(t, pool, writer)
			for range 2 {
				insertUnstalled(t, others)
				require.Len(t, read(t, r), 1)
			}
			release()
			require.NoError(t, <-done)

			got := read(t, r)
			if c.found {
				require.Len(t, got, 1)
			} else {
				require.Empty(t, got, "the committed row lies below the landmark, for ever")
			}
		})
	}
}

// With cache 20 a session's later rows get numbers below a landmark.
func sequenceCacheLosesRows(t *testing.T, database func(*testing.T) *pgxpool.Pool) {
	for cache, found := range map[int]int{1: 1, 20: 0} {
		pool := database(t)
		execSQL(t, pool, fmt.Sprintf(`alter sequence outbox_position_seq cache %d`, cache))
		r := newReader(t, pool, 10)
		one, two, three := acquireConn(t, pool), acquireConn(t, pool), acquireConn(t, pool)
		insertRaw(t, one) // takes 1, and with the cache also 2 to 20
		insertRaw(t, two)
		require.Len(t, read(t, r), 2)
		insertRaw(t, three)
		require.Len(t, read(t, r), 1)
		insertRaw(t, one)
		require.Len(t, read(t, r), found, "cache %d", cache)
	}
}

func insertUnstalled(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	_, err := conn.Exec(t.Context(), `begin; select pg_current_xact_id();
		insert into public.outbox (xid, event_id, event_type, source, topic, key, version, occurred_at, payload)
		values (pg_current_xact_id(), gen_random_uuid(), 't', '/test', 't', 'k', 1, now(), '{}'); commit`)
	require.NoError(t, err)
}

func stall(t testing.TB, pool *pgxpool.Pool, lock int) (release func()) {
	t.Helper()
	holder := acquireConn(t, pool)
	_, err := holder.Exec(t.Context(), `select pg_advisory_lock($1)`, lock)
	require.NoError(t, err)
	return func() {
		_, err := holder.Exec(t.Context(), `select pg_advisory_unlock($1)`, lock)
		require.NoError(t, err)
	}
}

func awaitAdvisoryWait(t testing.TB, pool *pgxpool.Pool, conn *pgx.Conn) {
	t.Helper()
	awaitNumber(t, pool, 1, `select count(*) from pg_stat_activity where pid = $1 and wait_event = 'advisory'`,
		int64(conn.PgConn().PID()))
}

// The other column order loses a row in the first schedules.
func randomStallsLoseNothing(t *testing.T, pool *pgxpool.Pool) {
	_, err := pool.Exec(t.Context(),
		stallingSQL+`create table public.outbox (`+xidColumnSQL+positionColumnSQL+restOfTableSQL)
	require.NoError(t, err)
	s := &stalls{
		t: t, pool: pool, reader: newReader(t, pool, 10), taken: map[int64]int{},
		others: newConn(t, pool), locks: newConn(t, pool),
	}
	for n := range 3 {
		s.free = append(s.free, s.newStalled(10+n))
	}
	insertUnstalled(t, s.others)
	rapid.Check(t, func(rt *rapid.T) {
		s.T = rt
		rt.Repeat(map[string]func(*rapid.T){
			"write": s.write, "undo": s.undo, "stall": s.stall, "go on": s.goOn,
			"step": s.step, "finish": s.finishWindow, "restart": s.restart,
		})
		s.finish()
	})
}

type stalls struct {
	*rapid.T
	t      *testing.T
	pool   *pgxpool.Pool
	reader *reader
	others *pgx.Conn
	locks  *pgx.Conn
	free   []*stalled
	busy   []*stalled
	taken  map[int64]int
}

type stalled struct {
	conn *pgx.Conn
	lock int
	done chan error
}

func (s *stalls) newStalled(lock int) *stalled {
	return &stalled{conn: newConn(s.t, s.pool), lock: lock, done: make(chan error, 1)}
}

func (s *stalls) exec(conn *pgx.Conn, sql string) {
	_, err := conn.Exec(s.t.Context(), sql)
	require.NoError(s, err, sql)
}

func (s *stalls) write(*rapid.T) { s.exec(s.others, insertRawSQL) }

func (s *stalls) undo(*rapid.T) { s.exec(s.others, `begin; `+insertRawSQL+`; rollback`) }

func (s *stalls) stall(*rapid.T) {
	if len(s.free) == 0 {
		s.Skip("all of them are stopped")
	}
	w := s.free[0]
	s.free, s.busy = s.free[1:], append(s.busy, w)
	side, other := "before", "after"
	if rapid.Bool().Draw(s.T, "after the id") {
		side, other = other, side
	}
	s.exec(s.locks, fmt.Sprintf(`select pg_advisory_lock(%d)`, w.lock))
	s.exec(w.conn, fmt.Sprintf(`set stall.%s = %d; set stall.%s = 0`, side, w.lock, other))
	go func() {
		_, err := w.conn.Exec(context.WithoutCancel(s.t.Context()), insertRawSQL)
		w.done <- err
	}()
	awaitAdvisoryWait(s.t, s.pool, w.conn)
}

func (s *stalls) goOn(*rapid.T) {
	if len(s.busy) == 0 {
		s.Skip("none is stopped")
	}
	i := rapid.IntRange(0, len(s.busy)-1).Draw(s.T, "writer")
	s.release(i)
}

func (s *stalls) release(i int) {
	w := s.busy[i]
	s.busy, s.free = slices.Delete(s.busy, i, i+1), append(s.free, w)
	s.exec(s.locks, fmt.Sprintf(`select pg_advisory_unlock(%d)`, w.lock))
	require.NoError(s, <-w.done)
}

func (s *stalls) step(*rapid.T) { s.publish() }

func (s *stalls) publish() (found bool) {
	found, err := s.reader.step(s.t.Context(), func(r record) { s.taken[r.Position]++ })
	require.NoError(s, err)
	return found
}

func (s *stalls) finishWindow(*rapid.T) { require.NoError(s, s.reader.finish(s.t.Context())) }

func (s *stalls) restart(*rapid.T) {
	s.finishWindow(nil)
	s.reader = takeOver(s.t, s.reader.conn, 10)
}

func (s *stalls) finish() {
	for len(s.busy) > 0 {
		s.release(0)
	}
	for s.publish() {
	}
	for _, position := range columnOf[int64](s.t, s.pool, `select position from outbox`) {
		require.Equal(s, 1, s.taken[position], "position %d", position)
	}
}
