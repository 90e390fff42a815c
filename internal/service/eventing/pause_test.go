package eventing_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func TestCauseAConsumerThatIsPaused(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	var handled atomic.Int64
	s.handle = func(context.Context, pinged) error { handled.Add(1); return nil }
	change := func(do func(tx pgx.Tx) error) { require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, do)) }
	pauseIt := func(tx pgx.Tx) error {
		return inbox.PauseConsumer(t.Context(), tx, repeatedConsumer, "ada", "the table is mended")
	}
	resumeIt := func(tx pgx.Tx) error { _, err := inbox.ResumeConsumer(t.Context(), tx, repeatedConsumer); return err }
	sentence := `ada paused test\.repeated: the table is mended\.`

	change(pauseIt)
	s.send(t, 1, 2)
	b := s.instance(t)
	found := b.awaitCause(t, "consumer_paused", sentence)
	require.Equal(t, "twinbox consumer resume test.repeated", found.Command)
	testkit.Until(t, func() bool { return b.node.Held() == 1 })
	require.Zero(t, handled.Load())
	change(resumeIt)
	testkit.Until(t, func() bool { return handled.Load() == 2 })
	b.awaitWell(t)

	change(pauseIt) // without a notification
	testkit.Until(t, func() bool { return b.node.Paused(repeatedConsumer) })
	s.send(t, 3)
	b.awaitCause(t, "consumer_paused", sentence)
	testkit.Until(t, func() bool { return b.node.Held() == 1 })
	require.EqualValues(t, 2, handled.Load())
	change(resumeIt)
	testkit.Until(t, func() bool { return handled.Load() == 3 })
	b.awaitWell(t)
}

func TestAConsumerWaitsForTheFirstAnswerAboutPauses(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	b := open(t, environ(t, pgtest.DSN(pool), brokers[0]))
	defer func() { require.NoError(t, b.node.Close()) }()
	require.NoError(t, b.node.Consume(eventing.Consumer{Name: "c", Topic: "t", Handlers: inbox.NewMux()}))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b.node.LookForPauses(gone)
	require.True(t, b.node.Paused("c"))
	b.node.LookForPauses(t.Context())
	require.False(t, b.node.Paused("c"))
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return inbox.PauseConsumer(t.Context(), tx, "c", "ada", "a test")
	}))
	b.node.LookForPauses(gone)
	require.False(t, b.node.Paused("c"))
	b.node.LookForPauses(t.Context())
	require.True(t, b.node.Paused("c"))
	b.node.LookForPauses(gone)
	require.True(t, b.node.Paused("c"))
}

func TestCauseARelayThatIsPaused(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	s.handle = func(_ context.Context, data pinged) error {
		if data.N == 1 {
			return inbox.Permanent(errors.New("a name that is none"))
		}
		return nil
	}
	change := func(do func(tx pgx.Tx) error) { require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, do)) }
	change(func(tx pgx.Tx) error { return relay.Pause(t.Context(), tx, "ada", "the topics are moved") })
	instances := []*bundle{s.instance(t), s.instance(t)}
	instances[1].add(t, s.topic, "k")
	for _, b := range instances {
		found := b.awaitCause(t, "relay_paused", `ada paused publishing: the topics are moved; 1 event waits\.`)
		require.Equal(t, "twinbox outbox resume", found.Command)
		b.awaitReady(t)
	}
	s.send(t, 1)
	instances[0].awaitCause(t, "dead_letters", `.* has 1 dead letter .*`)
	execute(t, s.pool, `update dead_letter set state = 'discarded', settled_at = now()`)
	instances[0].awaitCause(t, "relay_paused", `ada paused publishing: .*`)

	change(func(tx pgx.Tx) error { _, err := relay.Resume(t.Context(), tx); return err })
	instances[1].awaitWell(t)
	require.Len(t, kafkatest.ReadAll(t, s.brokers, s.topic, 2), 2)
}
