package relay

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// Each Publish commits the next event. The first round starts without a pause.
func TestARelayUnderLoadPausesBetweenRounds(t *testing.T) {
	t.Parallel()
	const events, every = 5, 100 * time.Millisecond
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Wake, cfg.roundEvery, cfg.pollMin, cfg.PollMax, cfg.Lease = o.Wake(), every, time.Hour, time.Hour, 4*time.Hour
	var began []time.Time
	l.Follow(func(call int, _ string, _ []*message.Message) error {
		began = append(began, time.Now())
		if call < events {
			commit(t, o, pool, newEvent("k"))
			o.Committed()
		}
		return nil
	})
	r := startRelay(t, cfg)
	testkit.Until(t, r.leads)
	commit(t, o, pool, newEvent("k"))
	o.Committed()
	requireAll(t, pool, l.AwaitDistinct(t, events))
	r.stop()
	for i := 2; i < events; i++ {
		require.GreaterOrEqual(t, began[i].Sub(began[i-2]), every, "round %d", i) // over two rounds, whose calls may be late
	}
}

func TestAWindowIsClosedAtRest(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	cfg := testRelayConfig(t, pool, l)
	cfg.Wake, cfg.pollMin, cfg.PollMax, cfg.Lease = o.Wake(), time.Hour, time.Hour, 4*time.Hour
	startRelay(t, cfg)
	for n := range 2 {
		commit(t, o, pool, newEvent("k"))
		o.Committed()
		l.AwaitDistinct(t, n+1)
		awaitCaughtUp(t, pool)
	}
}

func TestTheEndOfAWindowIsRecorded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, pool *pgxpool.Pool, l *leader){
		"a stop": func(t *testing.T, _ *pgxpool.Pool, l *leader) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			require.ErrorIs(t, l.run(ctx), context.Canceled)
		},
		"a pause": func(t *testing.T, pool *pgxpool.Pool, l *leader) {
			pause(t, pool, "me", "a test")
			_, err := l.round(t.Context())
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, pool := newOutbox(t), newDatabase(t)
			l := newLeader(t, testRelayConfig(t, pool, newLedger()))
			commit(t, o, pool, newEvent("k"))
			result, err := l.round(t.Context())
			require.NoError(t, err)
			require.Equal(t, published, result)
			require.True(t, l.open.complete, "it stays open")
			end(t, pool, l)
			require.Nil(t, l.open)
			awaitCaughtUp(t, pool)
		})
	}
}
