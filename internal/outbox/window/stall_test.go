package window

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/outboxtest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// The locks on which a writer stalls: before it takes its transaction id, and after.
const beforeXid, afterXid = 1, 2

// stallingSQL replaces the outbox by one whose xid default can be stopped on either side: by those two locks, or by
// those that the writer's session names. In which column order it is evaluated is the caller's.
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

// TestOnAQuietServer holds the tests that must lose rows. Landmarks reach further back as long as any transaction of
// the server runs, so that other tests' transactions would save the rows by chance.
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
	database := func(t *testing.T) *pgxpool.Pool {
		t.Helper()
		name := fmt.Sprintf("quiet_%d", time.Now().UnixNano())
		_, err := admin.Exec(t.Context(), `create database `+name)
		require.NoError(t, err)
		return outboxtest.Migrated(t, server.DSN(name))
	}
	t.Run("column order", func(t *testing.T) { columnOrderDecidesWhetherAStalledWriterIsLost(t, database) })
	t.Run("sequence cache", func(t *testing.T) { sequenceCacheLosesRows(t, database) })
	t.Run("random stalls", func(t *testing.T) { randomStallsLoseNothing(t, database(t)) })
}

// A writer's process may be stopped between two column defaults for any time. With position first it then has a low
// number and no transaction id yet, so it gets a high one: a landmark in between promises that all high ids lie above,
// and the row is never found. With xid first the number is taken after the id, wherever the writer is stopped.
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
			_, err := pool.Exec(t.Context(), stallingSQL+`create table public.outbox (`+c.columns+restOfTableSQL)
			require.NoError(t, err)
			r := newSession(t, pool, 10)
			writer, others := acquireConn(t, pool), acquireConn(t, pool)
			insertUnstalled(t, others) // a sequence's first number is logged, which takes a transaction id by itself
			require.Len(t, read(t, r), 1)

			release := stall(t, pool, c.stall)
			done := make(chan error, 1)
			go func() {
				_, err := writer.Exec(context.WithoutCancel(t.Context()), insertRawSQL)
				done <- err
			}()
			awaitAdvisoryWait(t, pool, writer)
			for range 2 { // the first round makes the landmark, the one after the second starts from it
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

// With cache 20 a session numbers its later rows below what others have taken meanwhile: below a landmark.
func sequenceCacheLosesRows(t *testing.T, database func(*testing.T) *pgxpool.Pool) {
	for cache, found := range map[int]int{1: 1, 20: 0} {
		pool := database(t)
		_, err := pool.Exec(t.Context(), fmt.Sprintf(`alter sequence outbox_position_seq cache %d`, cache))
		require.NoError(t, err)
		r := newSession(t, pool, 10)
		one, two, three := acquireConn(t, pool), acquireConn(t, pool), acquireConn(t, pool)
		insertRaw(t, one) // takes 1, and with the cache 2 to 20 as well
		insertRaw(t, two)
		require.Len(t, read(t, r), 2)
		insertRaw(t, three)
		require.Len(t, read(t, r), 1)
		insertRaw(t, one)
		require.Len(t, read(t, r), found, "cache %d", cache)
	}
}

// insertUnstalled writes an event with its own xid, in the order of the columns, past the stalling default. Supplying
// xid is what no writer may do; here it stands for a default that was not stopped.
func insertUnstalled(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	_, err := conn.Exec(t.Context(), `begin; select pg_current_xact_id();
		insert into public.outbox (xid, event_id, event_type, source, topic, key, version, occurred_at, payload)
		values (pg_current_xact_id(), gen_random_uuid(), 't', '/test', 't', 'k', 1, now(), '{}'); commit`)
	require.NoError(t, err)
}

// stall holds a lock until the returned function is called.
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
	testkit.Until(t, func() bool {
		return number(t, pool, `select count(*) from pg_stat_activity where pid = $1 and wait_event = 'advisory'`,
			int64(conn.PgConn().PID())) == 1
	})
}
