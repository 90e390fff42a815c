package relay

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/outbox/restore"
	"example.com/twinbox/test/testkit"
)

func onBroker(key string, version int64) cloudevent.Event {
	return cloudevent.Event{
		Topic: testTopic,
		ID:    key, Key: key, Version: version, Type: "test.happened.v1", Data: []byte(`{"n":1}`),
	}
}

// holding is a broker that holds the events, and counts how often it is asked.
func holding(asked *atomic.Int32, events ...cloudevent.Event) func(context.Context) ([]cloudevent.Event, error) {
	return func(context.Context) ([]cloudevent.Event, error) {
		asked.Add(1)
		return events, nil
	}
}

// startServer makes the database like one whose server was started after the last comparison.
func startServer(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `update outbox_cursor set compared = 'before'`)
	require.NoError(t, err)
}

func problemOf(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	err := restore.CheckWriters(t.Context(), pool)
	refused, is := errors.AsType[*outbox.CheckError](err)
	if !is {
		require.NoError(t, err)
		return ""
	}
	return refused.Problems[0].Code
}

func TestADatabaseThatKnowsLessThanTheBrokerPublishesNothing(t *testing.T) {
	t.Parallel()
	pool, l := newDatabase(t), newLedger()
	o := newOutbox(t)
	commit(t, o, pool, event("k"), event("k"), event("other"))
	schedule(t, o, pool, "added since", outbox.After(0))
	schedule(t, o, pool, "still waits", outbox.After(time.Hour))
	startServer(t, pool)
	var asked atomic.Int32
	lost := []cloudevent.Event{
		onBroker("k", 3), onBroker("gone", 1), onBroker("k", 4), onBroker("k", 4), onBroker("other", 1),
	}
	lost[0].Extensions = map[string]string{outbox.HeaderScheduledName: "added since"}
	cfg := testRelayConfig(t, pool, l)
	cfg.Published, cfg.ConfirmEvery, cfg.Scheduled = holding(&asked, lost...), tick, o
	r := startRelay(t, cfg)
	testkit.Until(t, func() bool { return r.Restored() != nil })
	require.ErrorContains(t, r.Healthy(t.Context()), "publishes nothing: outbox refuses to work: restored: "+testTopic+
		" holds version 3 of key k, this database knows 2; 3 more events are like it")
	require.Equal(t, restore.CodeRestored, problemOf(t, pool), "no writer is to write in the meantime")
	refusing, err := outbox.New(outbox.Config{Source: "/test", Refuse: r.Restored})
	require.NoError(t, err)
	_, err = refusing.Add(t.Context(), nil, event("k"))
	require.ErrorContains(t, err, restore.CodeRestored)
	r.stop()
	require.Zero(t, l.CallCount(), "nothing was sent")

	r = startRelay(t, cfg) // another process: the database remembers
	testkit.Until(t, func() bool { return r.Restored() != nil })
	require.EqualValues(t, 1, asked.Load())

	var adopted []int64
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		missing, _, err := restore.Lost(t.Context(), tx, lost)
		if err != nil {
			return err
		}
		n, err := restore.Confirm(t.Context(), tx, missing, func(_ context.Context, _ pgx.Tx, e cloudevent.Event) error {
			adopted = append(adopted, e.Version)
			return nil
		})
		require.Equal(t, 3, n)
		return err
	}))
	require.Equal(t, []int64{3, 1, 4}, adopted, "each once, a key's in their order")
	l.AwaitDistinct(t, 3)
	require.NoError(t, r.Restored())
	require.Empty(t, problemOf(t, pool))
	require.Equal(t, int64(1), number(t, pool, `select count(*) from outbox_scheduled`), "what was added is not again")
	require.Equal(t, int64(5), commit(t, o, pool, event("k"))[0].Version)
	require.Equal(t, int64(2), commit(t, o, pool, event("gone"))[0].Version)
	require.Equal(t, int64(2), commit(t, o, pool, event("other"))[0].Version)
	l.AwaitDistinct(t, 6)
}

func TestTheBrokerIsAskedOncePerStartOfTheServer(t *testing.T) {
	t.Parallel()
	pool, l := newDatabase(t), newLedger()
	o := newOutbox(t)
	var asked atomic.Int32
	cfg := testRelayConfig(t, pool, l)
	cfg.Published = holding(&asked, onBroker("k", 1), onBroker("old", 7))
	r := startRelay(t, cfg)
	commit(t, o, pool, event("k"))
	l.AwaitDistinct(t, 1)
	r.stop()
	require.Zero(t, asked.Load(), "a database that has published nothing has forgotten nothing")

	startServer(t, pool)
	require.Equal(t, restore.CodeNotCompared, problemOf(t, pool))
	_, err := pool.Exec(t.Context(), `insert into outbox_key values ($1, 'old', 7)`, testTopic)
	require.NoError(t, err)
	for range 2 {
		r = startRelay(t, cfg)
		commit(t, o, pool, event("k"))
		l.AwaitDistinct(t, int(number(t, pool, `select count(*) from outbox`)))
		r.stop()
		require.EqualValues(t, 1, asked.Load())
		require.Empty(t, problemOf(t, pool))
	}
	_, err = pool.Exec(t.Context(), `truncate outbox_cursor; insert into outbox_cursor (name, sysid, compared)
		select 'relay', system_identifier, extract(epoch from pg_postmaster_start_time())::text || '/0'
		from pg_control_system()`)
	require.NoError(t, err)
	require.Equal(t, restore.CodeNotCompared, problemOf(t, pool), "a dump was restored into the running server")
}

func TestNothingIsPublishedWhileTheBrokerCannotBeAsked(t *testing.T) {
	t.Parallel()
	pool, l := newDatabase(t), newLedger()
	commit(t, newOutbox(t), pool, event("k"))
	startServer(t, pool)
	var up atomic.Bool
	cfg := testRelayConfig(t, pool, l)
	cfg.ConfirmEvery = tick
	refused := make(chan struct{}, 1000)
	cfg.Published = func(context.Context) ([]cloudevent.Event, error) {
		if up.Load() {
			return nil, nil
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return nil, errors.New("no broker")
	}
	r := startRelay(t, cfg)
	for range 3 {
		select {
		case <-refused:
		case <-time.After(testTimeout):
			require.Fail(t, "it is asked again")
		}
	}
	require.Zero(t, l.CallCount())
	require.NoError(t, r.Restored(), "that is no restore")
	up.Store(true)
	l.AwaitDistinct(t, 1)
}
