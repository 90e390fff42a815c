package outbox

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/test/testkit"
)

func TestAddWaitsForTheKeyAndSeesItsNewestVersion(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	first, second := begin(t, pool), begin(t, pool)
	_, err := o.Add(t.Context(), first, newEvent("k"))
	require.NoError(t, err)

	var late []Added
	var wait errgroup.Group
	wait.Go(func() (err error) { // its snapshot is older than the first one's commit
		late, err = o.Add(t.Context(), second, newEvent("k"))
		return err
	})
	awaitLockWait(t, pool, second)
	require.NoError(t, first.Commit(t.Context()))
	require.NoError(t, wait.Wait())
	require.Equal(t, int64(2), late[0].Version)
}

func TestAddWithExpectedVersionWaitsForTheKey(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for before := range 3 {
		for _, commits := range []bool{true, false} {
			key := fmt.Sprintf("%d events, commits %t", before, commits)
			t.Run(key, func(t *testing.T) {
				for range before {
					commit(t, o, pool, newEvent(key))
				}
				e := newEvent(key)
				e.Version = int64(before) + 1
				first, second := begin(t, pool), begin(t, pool)
				_, err := o.Add(t.Context(), first, e)
				require.NoError(t, err)

				late := make(chan error, 1)
				go func() {
					again := newEvent(key)
					again.Version = e.Version
					_, err := o.Add(context.WithoutCancel(t.Context()), second, again)
					late <- err
				}()
				awaitLockWait(t, pool, second)
				if commits {
					require.NoError(t, first.Commit(t.Context()))
					require.ErrorIs(t, <-late, ErrVersionConflict)
				} else {
					require.NoError(t, first.Rollback(t.Context()))
					require.NoError(t, <-late)
				}
				require.NoError(t, second.Commit(t.Context()))
				require.Equal(t, e.Version, number(t, pool, `select count(*) from outbox where key = $1`, key))
				require.Equal(t, e.Version, number(t, pool, `select max(version) from outbox where key = $1`, key))
				require.Equal(t, e.Version, number(t, pool, `select version from outbox_key where key = $1`, key))
			})
		}
	}
}

func awaitLockWait(t testing.TB, pool interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, tx pgx.Tx,
) {
	t.Helper()
	pid := tx.Conn().PgConn().PID()
	testkit.Until(t, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), `select wait_event_type = 'Lock' from pg_stat_activity where pid = $1`,
			int64(pid)).Scan(&waiting)
		return err == nil && waiting
	})
}

func TestAddLocksKeysInOneOrder(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	var group errgroup.Group
	for worker := range 4 {
		group.Go(func() error {
			for range 25 {
				events := []event.Event{newEvent("a"), newEvent("b"), newEvent("c"), newEvent("d")}
				if worker%2 == 1 {
					events[0], events[3], events[1], events[2] = events[3], events[0], events[2], events[1]
				}
				err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
					_, err := o.Add(t.Context(), tx, events...)
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.Equal(t, int64(400), number(t, pool, `select count(*) from outbox`))
	require.Zero(t, number(t, pool, `select count(*) from (select version - lag(version, 1, 0::bigint)
		over (partition by key order by position) as step from outbox) s where step <> 1`))
}
