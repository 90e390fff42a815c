package inbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// Version 2 comes while an operator settles version 1.
func TestNoEventParksBehindASettledDeadLetter(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]action{"replay": replayingDead, "discard": discardingDead} {
		for _, consumerFirst := range []bool{true, false} {
			t.Run(map[bool]string{true: "after", false: "before"}[consumerFirst]+" "+name, func(t *testing.T) {
				t.Parallel()
				c := newClinic(t, 1, nil)
				c.fall("bad")
				dead, next, other := sick("a", 1, "bad"), v("a", 2), v("a", 3)
				c.deliver(t, dead)
				c.heal()
				park := c.delivering(t, next)
				if consumerFirst {
					c.interleave(t, "commit", park, settle)
				} else {
					c.interleave(t, "commit", settle, park)
					require.Equal(t, 1, c.Count(t, `select count(*) from dead_letter`), "the consumer has waited")
				}
				c.resume(t)
				c.requireNothingWaits(t)
				require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, other))
				effects := []event.Event{dead, next, other}
				if name == "discard" {
					effects = effects[1:]
				}
				c.requireEffects(t, effects...)
			})
		}
	}
}

// A key without a row cannot be locked: the second owner to commit must decide again.
func TestTheFirstDeadLetterOfAKeyBesideItsOtherEvents(t *testing.T) {
	t.Parallel()
	dead, second := sick("a", 1, "bad"), v("a", 2)
	for name, come := range map[string][2]event.Event{
		"the dead letter first": {dead, second}, "the gap first": {second, dead}, "the same one twice": {dead, dead},
		"the same gap twice": {second, second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, nil)
			c.fall("bad")
			c.interleave(t, "commit", c.delivering(t, come[0]), c.delivering(t, come[1]))
			require.EqualValues(t, min(come[0].Version, come[1].Version), c.Count(t, `select parked_from from inbox_key`))
			c.heal()
			c.deliver(t, dead, second)
			c.replay(t, deadletter.Filter{})
			c.resume(t)
			c.requireNothingWaits(t)
			c.requireEffects(t, dead, second)
		})
	}
}

// One process of the consumer is still strict and parks an event. Another one is not.
func TestAReplayOfAnUnorderedConsumerLocksTheKeyToo(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	dead, next := sick("a", 1, "bad"), v("a", 2)
	c.deliver(t, dead)
	c.heal()
	msgs := c.records(t, next)
	parkStrictly := func(ctx context.Context, p party) error {
		cfg := p.config
		cfg.Order = inbox.Strict
		in, err := inbox.New(cfg)
		if err != nil {
			return err
		}
		_, err = in.BatchMiddleware(c.handler)(ctx, msgs)
		return err
	}
	c.Config.Order = inbox.Unordered
	c.open(t)
	c.interleave(t, "commit", parkStrictly, replayingDead)
	require.Equal(t, []string{"parked_behind 2"}, c.waiting(t))
	require.Equal(t, 2, c.Count(t, `select parked_from from inbox_key`))
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
	c.requireNothingWaits(t)
	c.requireEffects(t, dead, next)
}

// The edit comes after the replay has read the dead letter and before it locks it.
func TestAReplayTakesTheLatestEdit(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	dead := sick("a", 1, "bad")
	c.deliver(t, dead)
	c.interleave(t, "from public.dead_letter where id = $1 and state = 'waiting' for update",
		replayingDead, func(context.Context, party) error {
			c.edit(t, dead.ID, deadletter.Edit{Payload: []byte(`{"value":"good"}`)})
			return nil
		})
	c.requireNothingWaits(t)
	c.requireEffects(t, dead)
}

// The discard comes before the replay can record its failure.
func TestADeadLetterThatIsDiscardedWhileItsReplayFails(t *testing.T) {
	t.Parallel()
	resuming := func(ctx context.Context, p party) error { return p.replayer.ResumeRound(ctx) }
	for name, s := range map[string]struct {
		come []event.Event
		act  action
	}{
		"replayed": {[]event.Event{sick("a", 1, "bad")}, replayingDead},
		"resumed":  {[]event.Event{sick("a", 2, "bad"), v("a", 1)}, resuming},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, nil)
			c.fall("bad")
			c.deliver(t, s.come...)
			c.Host.Copy = func(context.Context, pgx.Tx, deadletter.Letter) error {
				return errors.New("it was discarded")
			}
			const noteFailure = "update public.dead_letter\nset attempts = $5, replays"
			c.interleave(t, noteFailure, s.act, func(ctx context.Context, p party) error {
				_, err := p.store.Discard(ctx, deadletter.Filter{EventID: s.come[0].ID}, discarding)
				return err
			})
			require.Equal(t, []string{"discard"}, c.List(t, `select verb from operator_action`))
			c.requireNothingWaits(t)
		})
	}
}

// The second owner looked for a dead letter earlier and waits for the id.
func TestNoOwnerAppliesAnEventThatBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest, inbox.Strict} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, ordered(order))
			c.fall("bad")
			dead := sick("a", 0, "bad")
			giveUp, apply := c.delivering(t, dead), c.delivering(t, dead)
			c.interleave(t, "commit", giveUp, func(ctx context.Context, p party) error {
				c.heal()
				return apply(ctx, p)
			})
			require.ElementsMatch(t, []inbox.Outcome{inbox.Dead, inbox.Duplicate}, c.seen)
			require.Equal(t, []string{"handler_failed 0"}, c.waiting(t))
			c.requireEffects(t)
			require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
			c.requireEffects(t, dead)
		})
	}
}
