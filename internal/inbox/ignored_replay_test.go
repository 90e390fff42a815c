package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

func acceptsNone(cfg *inbox.Config) { cfg.Accepts = func(string) bool { return false } }

// A later release of the consumer has no handler for the type.
func TestAReplayOfATypeWithoutAHandlerSettlesTheDeadLetter(t *testing.T) {
	t.Parallel()
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest, inbox.Strict} {
		for _, version := range []int64{0, 1} {
			t.Run(string(order), func(t *testing.T) {
				t.Parallel()
				c := newClinic(t, 1, ordered(order))
				c.fall("bad")
				c.deliver(t, sick("a", version, "bad"))
				acceptsNone(&c.Config)
				c.open(t)
				require.Equal(t, []string{"ignored"}, c.replay(t, deadletter.Filter{}))
				c.requireNothingWaits(t)
				require.Equal(t, []string{"ignored"}, c.List(t, `select detail ->> 'outcome' from operator_action`))
			})
		}
	}
}
