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
	"example.com/twinbox/test/kafkatest"
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

	change(pauseIt)
	sent := int64(2)
	testkit.Until(t, func() bool { // the answer of a moment ago still holds
		sent++
		s.send(t, sent)
		return b.node.Held() == 1
	})
	b.awaitCause(t, "consumer_paused", sentence)
	require.Less(t, handled.Load(), sent)
	change(resumeIt)
	testkit.Until(t, func() bool { return handled.Load() == sent })
	b.awaitWell(t)
}

func TestAConsumerWaitsUntilItsPauseIsKnown(t *testing.T) {
	t.Parallel()
	s := newTrouble(t)
	var handled atomic.Int64
	s.handle = func(context.Context, pinged) error { handled.Add(1); return nil }
	execute(t, s.pool, `alter table inbox_pause rename to away`)
	s.send(t, 1)
	b := s.instance(t)
	found := b.awaitCause(t, "attempt_failing", `test\.repeated fails at the next record of .*`)
	require.Contains(t, found.Details, "inbox_pause")
	require.Zero(t, handled.Load())
	execute(t, s.pool, `alter table away rename to inbox_pause`)
	testkit.Until(t, func() bool { return handled.Load() == 1 })
	b.awaitWell(t)
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
		require.Equal(t, "twinbox outbox resume --service test", found.Command)
		b.awaitReady(t)
	}
	s.send(t, 1)
	instances[0].awaitCause(t, "dead_letters", `.* has 1 dead letter.*`)
	execute(t, s.pool, `update dead_letter set state = 'discarded', settled_at = now()`)
	instances[0].awaitCause(t, "relay_paused", `ada paused publishing: .*`)

	change(func(tx pgx.Tx) error { _, err := relay.Resume(t.Context(), tx); return err })
	instances[1].awaitWell(t)
	require.Len(t, kafkatest.ReadAll(t, s.brokers, s.topic, 2), 2)
}
