package eventing_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/pause"
	"example.com/twinbox/internal/service/eventing"
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
