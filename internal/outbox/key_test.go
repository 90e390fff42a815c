package outbox

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestLockKeyReturnsTheKeysVersion(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	commit(t, o, pool, newEvent("old"), newEvent("old"))
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for key, want := range map[string]int64{"old": 2, "new": 0} {
			version, err := LockKey(t.Context(), tx, testTopic, key)
			require.NoError(t, err)
			require.Equal(t, want, version)
			next := newEvent(key)
			next.Version = version + 1
			_, err = o.Add(t.Context(), tx, next)
			require.NoError(t, err)
			version, err = LockKey(t.Context(), tx, testTopic, key)
			require.NoError(t, err)
			require.Equal(t, want+1, version)
		}
		return nil
	}))
}

func TestLockKeyWaitsForTheKeyAndSeesItsNewestVersion(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	for before := range 2 {
		for _, commits := range []bool{true, false} {
			key := fmt.Sprintf("%d events, commits %t", before, commits)
			t.Run(key, func(t *testing.T) {
				for range before {
					commit(t, o, pool, newEvent(key))
				}
				first, second := begin(t, pool), begin(t, pool)
				_, err := LockKey(t.Context(), first, testTopic, key)
				require.NoError(t, err)
				late := make(chan int64, 1)
				go func() {
					version, err := LockKey(context.WithoutCancel(t.Context()), second, testTopic, key)
					if err != nil {
						version = -1
					}
					late <- version
				}()
				awaitLockWait(t, pool, second)
				_, err = o.Add(t.Context(), first, newEvent(key))
				require.NoError(t, err)
				want := int64(before)
				if commits {
					want++
					require.NoError(t, first.Commit(t.Context()))
				} else {
					require.NoError(t, first.Rollback(t.Context()))
				}
				require.Equal(t, want, <-late)
				added, err := o.Add(t.Context(), second, newEvent(key))
				require.NoError(t, err)
				require.Equal(t, want+1, added[0].Version)
			})
		}
	}
}
