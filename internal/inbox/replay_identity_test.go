package inbox_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// The other event came under the dead event's id.
func TestAnotherEventDoesNotTakeTheIDOfADeadOne(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, ordered(inbox.Unordered))
	dead := sick("a", 1, "bad")
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Conflict}, c.deliver(t, dead, payload(dead, `{"value":"other"}`)))
	require.Equal(t, []string{"failed handler_failed", "refused id_conflict"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t)
	c.heal()
	require.Equal(t, []string{"applied", "refused id_conflict"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, dead)
}

// picky is an unordered consumer whose contract refuses every event while isWrong.
func picky(t *testing.T) (c *clinic, isWrong *bool) {
	t.Helper()
	isWrong = new(bool)
	c = newClinic(t, 1, func(cfg *inbox.Config) {
		cfg.Order = inbox.Unordered
		cfg.Validate = func(event.Event) error {
			if *isWrong {
				return errors.New("breaks the contract")
			}
			return nil
		}
	})
	return c, isWrong
}

// It is expired, not refused: it may have been applied.
func TestAForgottenEventThatBreaksItsContractIsExpired(t *testing.T) {
	t.Parallel()
	c, isWrong := picky(t)
	e := v("a", 1)
	c.deliver(t, e)
	c.Exec(t, `delete from inbox`)
	c.Exec(t, `update inbox_horizon set remembers_from = now() + interval '1 day'`)
	*isWrong = true
	require.Equal(t, []inbox.Outcome{inbox.Expired}, c.deliver(t, e))
	require.Equal(t, []string{inbox.CodeHandlerFailed}, c.List(t, `select code from dead_letter`))
	*isWrong = false
	require.Equal(t, []string{"refused too_old"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, e)
}

func TestAnEventThatBreaksItsContractUnderATakenID(t *testing.T) {
	t.Parallel()
	c, isWrong := picky(t)
	first, second := v("a", 1), v("a", 2)
	c.deliver(t, first)
	*isWrong = true
	require.Equal(t, []inbox.Outcome{inbox.Duplicate, inbox.Conflict},
		c.deliver(t, first, payload(first, `{"value":"other"}`)))
	*isWrong = false
	require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, second))
	require.Equal(t, []string{"refused id_conflict"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, first, second)
}

// The producer may send the right event under the broken record's id.
func TestABrokenRecordTakesNoID(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	right := v("a", 1)
	wrong := right
	wrong.Source = ""
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Applied}, c.deliver(t, wrong, right))
	c.edit(t, right.ID, deadletter.Edit{Set: []deadletter.Header{{Name: "ce_source", Value: []byte("/shop")}}})
	require.Equal(t, []string{"duplicate"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, right)
}

// The letter of the broken record is not the right event's.
func TestARightEventBehindItsBrokenRecordParks(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	first, right, third := v("a", 1), v("a", 2), v("a", 3)
	wrong := right
	wrong.Source = ""
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Gap, inbox.Parked}, c.deliver(t, wrong, right, third))
	require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, first))
	c.resume(t)
	c.requireEffects(t, first, right, third)
}
