package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

func TestAnEventWithoutAVersionDoesNotOvertakeADeadLetter(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	c.fall("bad")
	first, second := sick("a", 1, "bad"), v("a", 0)
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Parked}, c.deliver(t, first, second))
	c.resume(t)
	c.requireEffects(t)
	c.heal()
	require.Equal(t, []string{"failed missing_version"}, c.replay(t, deadletter.Filter{}))
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{EventID: first.ID}))
	require.Equal(t, []string{"missing_version 0"}, c.waiting(t))
	c.edit(t, second.ID, deadletter.Edit{Set: []deadletter.Header{{Name: event.HeaderVersion, Value: []byte("2")}}})
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, first, second)
	c.requireNothingWaits(t)
}

func TestAParkedEventWithoutAVersionDoesNotOvertakeADeadLetter(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	c.fall("bad")
	first, second, third := sick("a", 1, "bad"), v("a", 0), v("a", 0)
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Parked, inbox.Parked}, c.deliver(t, first, second, third))
	c.resume(t)
	c.discard(t, deadletter.Filter{EventID: second.ID})
	c.resume(t)
	c.requireEffects(t)
	c.heal()
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{EventID: first.ID}))
	c.resume(t)
	require.Equal(t, []string{"missing_version 0"}, c.waiting(t))
	c.requireEffects(t, first)
}
