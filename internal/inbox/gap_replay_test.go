package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

func TestTheWayOnFromAGap(t *testing.T) {
	t.Parallel()
	accepting := []func(*inbox.Options){gapAccepted}
	for name, s := range map[string]struct {
		order   inbox.Order
		come    []int64
		options []func(*inbox.Options)
		results []string
		left    []string
	}{
		"refused as it is": {
			inbox.Strict, []int64{1, 3, 4}, nil, []string{"refused version_gap"}, []string{"version_gap 3", "parked_behind 4"},
		},
		"accepted":                   {inbox.Strict, []int64{1, 3, 4, 7}, accepting, results(3, "applied"), nil},
		"a key begins in its middle": {inbox.Strict, []int64{700, 701}, accepting, results(2, "applied"), nil},
		"a jump fails": {
			inbox.Latest, []int64{1, 5000}, nil, []string{"failed version_jump"}, []string{"version_jump 5000"},
		},
		"a jump is accepted": {inbox.Latest, []int64{1, 5000}, accepting, results(1, "applied"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 200, ordered(s.order))
			events := make([]event.Event, len(s.come))
			for i, version := range s.come {
				events[i] = v("a", version)
			}
			c.deliver(t, events...)
			require.Equal(t, s.results, c.replay(t, deadletter.Filter{}, s.options...))
			require.Equal(t, append([]string{}, s.left...), c.waiting(t))
			if s.left != nil {
				return
			}
			c.requireEffects(t, events...)
			c.requireNothingWaits(t)
			require.Equal(t, []inbox.Outcome{inbox.Stale}, c.deliver(t, v("a", s.come[len(s.come)-1]-1)), "it comes after all")
			require.Positive(t, c.Count(t, `select count(*) from operator_action where detail ->> 'accepted_gap' = 'true'`))
		})
	}
}

func TestAcceptGapKeepsTheOrder(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	come := []event.Event{v("a", 1), v("a", 5), v("a", 3)}
	c.deliver(t, come...)
	require.Equal(t, []string{"refused behind_waiting"},
		c.replay(t, deadletter.Filter{EventID: come[1].ID}, gapAccepted))
	require.Equal(t, results(2, "applied"), c.replay(t, deadletter.Filter{}, gapAccepted))
	c.requireEffects(t, come[0], come[2], come[1])
	c.requireNothingWaits(t)
}

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
