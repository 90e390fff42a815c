package eventing_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/pause"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// A consumer that was paused before its service started handles nothing, says so and is well otherwise; then it goes on
// where it stopped. Paused while it runs, it stops again, and so does an instance without a notification.
func TestCauseAConsumerThatIsPaused(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	var handled atomic.Int64
	s.handle = func(context.Context, pinged) error { handled.Add(1); return nil }
	change := func(do func(tx pgx.Tx) error) { require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, do)) }
	pauseIt := func(tx pgx.Tx) error {
		return pause.Pause(t.Context(), tx, repeatedConsumer, "ada", "the table is mended")
	}
	resumeIt := func(tx pgx.Tx) error { _, err := pause.Resume(t.Context(), tx, repeatedConsumer); return err }
	sentence := `test\.repeated has been paused by ada since ` + aTime + `: the table is mended\.`

	change(pauseIt)
	s.send(t, 1, 2)
	b := s.instance(t)
	found := b.awaitCause(t, eventing.CauseConsumerPaused, sentence)
	require.Equal(t, "twinbox consumer resume test.repeated", found.Command)
	testkit.Until(t, func() bool { return b.node.Held() == 1 })
	require.Zero(t, handled.Load())
	change(resumeIt)
	eventing.Operable{Node: b.node}.LookForPauses()
	testkit.Until(t, func() bool { return handled.Load() == 2 })
	b.awaitWell(t)

	change(pauseIt) // without a notification to the instance
	testkit.Until(t, func() bool { return b.node.Paused(repeatedConsumer) })
	s.send(t, 3)
	b.awaitCause(t, eventing.CauseConsumerPaused, sentence)
	testkit.Until(t, func() bool { return b.node.Held() == 1 })
	require.EqualValues(t, 2, handled.Load())
	change(resumeIt)
	testkit.Until(t, func() bool { return handled.Load() == 3 })
	b.awaitWell(t)
}

// A relay that was paused before its service started publishes nothing, is ready all the same, and hides no other
// cause. Resumed, it publishes the events that have waited.
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
		found := b.awaitCause(t, eventing.CauseRelayPaused,
			`Publishing has been paused by ada since `+aTime+`: the topics are moved; 1 event waits\.`)
		require.Equal(t, "twinbox outbox resume", found.Command)
		b.awaitReady(t)
	}
	s.send(t, 1)
	instances[0].awaitCause(t, eventing.CauseDeadLetters, `1 dead letter .*`)
	execute(t, s.pool, `update dead_letter set state = 'discarded', settled_at = now()`)
	instances[0].awaitCause(t, eventing.CauseRelayPaused, `Publishing has been paused by ada .*`)

	change(func(tx pgx.Tx) error { _, err := relay.Resume(t.Context(), tx); return err })
	instances[1].awaitWell(t)
	require.Len(t, kafkatest.ReadAll(t, s.brokers, s.topic, 2), 2)
}
