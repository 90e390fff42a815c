package inbox_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// An event is dead, and another one comes under its id: a replay must not apply that one in its place.
func TestAnotherEventDoesNotTakeTheIDOfADeadOne(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, func(cfg *inbox.Config) { cfg.OnDead = inbox.DeadPass })
	dead := sick("a", 1, "bad")
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Conflict},
		c.deliver(t, dead, payload(dead, `{"value":"other"}`)))
	report := c.replay(t, operate.Filter{})
	require.Equal(t, 1, report.Failed)
	require.Equal(t, 1, report.Refused)
	require.Equal(t, inbox.CodeConflict, report.Problems[1].Code)
	c.requireEffects(t)
	c.heal()
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
	c.requireEffects(t, dead)
}

// strict is a consumer whose contract refuses everything while it is wrong.
func strict(t *testing.T) (c *clinic, wrong *bool) {
	wrong = new(bool)
	c = newClinic(t, 1, func(cfg *inbox.Config) {
		cfg.Versioned = false
		cfg.Validate = func(cloudevent.Event) error {
			if *wrong {
				return errors.New("breaks the contract")
			}
			return nil
		}
	})
	return c, wrong
}

// An event that the inbox has forgotten comes again and is refused before its id is looked at. The
// inbox cannot know that it was applied, so its dead letter does not say so.
func TestAForgottenEventThatIsRefusedIsNotReplayed(t *testing.T) {
	t.Parallel()
	c, wrong := strict(t)
	e := v("a", 1)
	c.deliver(t, e)
	c.Exec(t, `delete from inbox`)
	c.Exec(t, `update inbox_horizon set remembers_from = now() + interval '1 day'`)
	*wrong = true
	require.Equal(t, []inbox.Outcome{inbox.Dead}, c.deliver(t, e))
	*wrong = false
	report := c.replay(t, operate.Filter{})
	require.Equal(t, 1, report.Refused)
	require.Equal(t, inbox.CodeTooOld, report.Problems[0].Code)
	c.requireEffects(t, e)
	require.Equal(t, []inbox.Outcome{inbox.Expired}, c.deliver(t, v("a", 2)), "and does not hold its key")
}

// A record that is refused under an id that another event has is none of its key's events.
func TestARefusedRecordUnderATakenIDHoldsNothing(t *testing.T) {
	t.Parallel()
	c, wrong := strict(t)
	first, second := v("a", 1), v("a", 2)
	c.deliver(t, first)
	*wrong = true
	require.Equal(t, []inbox.Outcome{inbox.Dead}, c.deliver(t, payload(first, `{"value":"other"}`)))
	*wrong = false
	require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, second))
	require.Equal(t, inbox.CodeConflict, c.replay(t, operate.Filter{}).Problems[0].Code)
	c.requireEffects(t, first, second)
}
