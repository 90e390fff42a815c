package upgrade

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/lease"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

// Only the first edition had effects in the order of a key. The effect of version 5 of the key a has begun, and no
// effect of the key b.
const orderedSQL = `
insert into lease (handler, event_id, state, token, ended_at, key, version, superseded_by) values
	('ordered', 'superseded', 'done', null, now(), 'a', 1, 4),
	('ordered', 'a2', 'pending', null, null, 'a', 2, null),
	('ordered', 'a3', 'claimed', gen_random_uuid(), null, 'a', 3, null),
	('ordered', 'a4', 'submitting', gen_random_uuid(), null, 'a', 4, null),
	('ordered', 'a5', 'done', null, now(), 'a', 5, null),
	('ordered', 'a6', 'pending', null, null, 'a', 6, null),
	('ordered', 'b1', 'claimed', gen_random_uuid(), null, 'b', 1, null);
insert into lease_watermark (handler, key, version) values ('ordered', 'a', 5)`

// An effect that had begun is uncertain.
func TestTheLeasesOfTheFirstEditionContinue(t *testing.T) {
	t.Parallel()
	pool := restore(t, "notification")
	_, err := pool.Exec(t.Context(), orderedSQL)
	require.NoError(t, err)
	before := leaseStates(t, pool)
	_, err = migrations.Apply(t.Context(), pgtest.DSN(pool), migrations.ForNotification()...)
	require.NoError(t, err)
	require.Zero(t, number(t, pool, `select count(*) from lease where state = 'skipped'
		and (error is distinct from 'superseded by an effect of version ' ||
			case event_id when 'superseded' then 4 else 5 end || ' of its key' or ended_at is null)`))
	_, err = pool.Exec(t.Context(), `update lease set due_at = clock_timestamp() where state in
		('pending', 'claimed', 'submitting')`)
	require.NoError(t, err)

	want := map[[2]string]string{}
	carriedOut := []string{"a6", "b1"}
	for row, state := range before {
		switch state {
		case "pending", "claimed":
			state = "done"
			if row[0] != "ordered" {
				carriedOut = append(carriedOut, row[1])
			}
		case "submitting":
			state = "uncertain"
		}
		want[row] = state
	}
	for _, event := range []string{"superseded", "a2", "a3"} {
		want[[2]string{"ordered", event}] = "skipped"
	}
	require.ElementsMatch(t, carriedOut, carryOut(t, pool, want, "ordered", "mail.verification"))
}

func carryOut(t *testing.T, pool *pgxpool.Pool, want map[[2]string]string, handlers ...string) (events []string) {
	t.Helper()
	var lock sync.Mutex
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	settings := lease.DefaultSettings()
	settings.Poll = 10 * time.Millisecond
	for _, handler := range handlers {
		r, err := lease.New(lease.Config{
			Handler: handler, Pool: pool, Settings: settings,
			Effect: lease.Effect{Do: func(ctx context.Context, c *lease.Claim) error {
				if err := c.Begin(ctx); err != nil {
					return err
				}
				lock.Lock()
				defer lock.Unlock()
				events = append(events, c.EventID)
				return nil
			}},
		})
		require.NoError(t, err)
		running.Go(func() { _ = r.Run(ctx) })
	}
	var states map[[2]string]string
	testkit.Until(t, func() bool {
		states = leaseStates(t, pool)
		for row, state := range states {
			if want[row] != state {
				return false
			}
		}
		return len(states) == len(want)
	}, "leases do not continue: %v", &states)
	stop()
	running.Wait()
	return events
}

func leaseStates(t *testing.T, pool *pgxpool.Pool) map[[2]string]string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select handler, event_id, state from lease`)
	require.NoError(t, err)
	states := map[[2]string]string{}
	var handler, event, state string
	_, err = pgx.ForEachRow(rows, []any{&handler, &event, &state}, func() error {
		states[[2]string{handler, event}] = state
		return nil
	})
	require.NoError(t, err)
	return states
}
