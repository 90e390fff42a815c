package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

func TestADeadLetterHoldsItsKeyUntilItIsReplayed(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 200} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, batch, nil)
			a := []event.Event{v("a", 1), sick("a", 2, "bad"), v("a", 3), v("a", 4), v("a", 5)}
			b := []event.Event{v("b", 1), v("b", 2)}
			c.fall("bad")
			require.Equal(t, []inbox.Outcome{
				inbox.Applied, inbox.Dead, inbox.Applied, inbox.Parked, inbox.Applied, inbox.Parked,
			}, c.deliver(t, a[0], a[1], b[0], a[2], b[1], a[3]))
			c.resume(t)
			c.requireEffects(t, a[0], b[0], b[1])

			c.heal()
			require.Equal(t, []string{"would_replay"}, c.replay(t, deadletter.Filter{Code: inbox.CodeHandlerFailed}, dry))
			c.requireEffects(t, a[0], b[0], b[1])
			require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{Code: inbox.CodeHandlerFailed}))
			c.requireEffects(t, a[0], b[0], b[1], a[1])
			c.resume(t)
			c.requireEffects(t, a[0], b[0], b[1], a[1], a[2], a[3])
			require.Equal(t, 4, c.Count(t, `select version from inbox_key where key = 'a'`))

			require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, a[4]))
			require.Empty(t, c.replay(t, deadletter.Filter{}))
			require.Equal(t, []inbox.Outcome{inbox.Duplicate, inbox.Duplicate}, c.deliver(t, a[1], a[2]))
			c.requireEffects(t, a[0], b[0], b[1], a[1], a[2], a[3], a[4])
			c.requireNothingWaits(t)
			require.Equal(t, []string{
				"ana fixed", "inbox no event is missing before it any more",
				"inbox no event is missing before it any more",
			}, c.List(t, `select operator || ' ' || reason
				from operator_action where verb = 'replay' and kind = 'dead_letter' and before = 'waiting'
					and after = 'replayed' and detail ->> 'outcome' = 'applied' order by id`))
		})
	}
}

func TestAKeyStopsAtItsFirstFailureAndOthersGoOn(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	a := []event.Event{sick("a", 1, "bad"), sick("a", 2, "worse"), v("a", 3)}
	b := []event.Event{sick("b", 1, "bad"), v("b", 2)}
	c.fall("bad")
	c.deliver(t, append(a, b...)...)
	c.fall("worse")
	require.Equal(t, []string{"applied", "failed handler_failed", "applied", "applied"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, a[0], b[0], b[1])
	require.Equal(t, []string{a[1].ID + " unknown handler_failed 2 1", a[2].ID + " parked parked_behind 1 0"}, c.List(t,
		`select event_id || ' ' || class || ' ' || code || ' ' || attempts || ' ' || replays
		from dead_letter where state = 'waiting' order by version`))
	c.heal()
	require.Equal(t, results(2, "applied"), c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, a[0], b[0], b[1], a[1], a[2])
	c.requireNothingWaits(t)
}

func TestAReplayIsNeverOverNewerState(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, ordered(inbox.Latest))
	dead, next := sick("a", 1, "bad"), v("a", 2)
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Applied}, c.deliver(t, dead, next))
	c.heal()
	require.Equal(t, []string{"stale"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, next)
	require.Equal(t, []string{"replayed stale"}, c.List(t, `select state || ' ' || outcome from dead_letter`))
}

func TestDeadLettersThatHoldNoKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	first, second := v("a", 1), v("a", 2)
	old := at(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	old.Key, old.Version = "a", 2
	c.Exec(t, `update inbox_horizon set remembers_from = '2020-01-01'`)
	c.deliver(t, first, payload(first, `{"value":"other"}`), old)
	broken := v("a", 2)
	broken.Source = ""
	c.deliver(t, broken)
	require.Equal(t, []string{"id_conflict", "too_old", "missing_source"},
		c.List(t, `select code from dead_letter where not holds order by id`))
	require.ElementsMatch(t, []string{"refused id_conflict", "refused too_old", "refused missing_source"},
		c.replay(t, deadletter.Filter{}))
	require.Equal(t, 3, c.Count(t, `select count(*) from dead_letter where state = 'waiting' and replays = 0`))
	require.Equal(t, 3, c.Count(t, `select count(*) from operator_action where detail ->> 'outcome' = 'refused'`))
	require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, second))
	c.requireEffects(t, first, second)

	outcomes := c.replay(t, deadletter.Filter{Code: inbox.CodeTooOld}, forced)
	require.Equal(t, []string{"stale"}, outcomes, "not over newer state")
	require.Equal(t, 1, c.Count(t, `select count(*) from operator_action where detail ->> 'forced' = 'true'`))
}

func TestAForcedReplayAppliesAnExpiredEvent(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, ordered(inbox.Unordered))
	c.Exec(t, `update inbox_horizon set remembers_from = '2026-01-03'`)
	e := at(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	require.Equal(t, []inbox.Outcome{inbox.Expired}, c.deliver(t, e))
	require.Equal(t, []string{"refused too_old"}, c.replay(t, deadletter.Filter{}))
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}, forced))
	c.requireEffects(t, e)
}

func TestADeadLetterOutlivesTheMemoryOfTheInbox(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	e := payload(at(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)), `{"value":"bad"}`)
	e.Version = 1
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{inbox.Dead}, c.deliver(t, e))
	c.Exec(t, `update inbox_horizon set remembers_from = '2026-01-03'`)
	c.heal()
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
	c.Exec(t, `delete from inbox`)
	require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, e))
	c.requireEffects(t, e)
}

func TestAnEventBehindOneThatWaitsIsRefused(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	first, second := sick("a", 1, "bad"), v("a", 2)
	c.fall("bad")
	c.deliver(t, first, second)
	c.heal()
	require.Equal(t, []string{"refused behind_waiting"}, c.replay(t, deadletter.Filter{EventID: second.ID}))
	require.Equal(t, []string{"handler_failed 1", "parked_behind 2"}, c.waiting(t))
	c.requireEffects(t)
	c.discard(t, deadletter.Filter{EventID: first.ID})
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{EventID: second.ID}))
	c.requireEffects(t, second)
	c.requireNothingWaits(t)
}

// Only the lower bound is exact: a slow machine takes longer.
func TestAReplayKeepsToItsRate(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	c.deliver(t, sick("a", 1, "bad"), v("a", 2), sick("b", 1, "bad"), sick("c", 1, "bad"))
	c.heal()
	hourly := func(o *inbox.Options) { o.DryRun, o.PerSecond = true, 1./3600 }
	require.Len(t, c.replay(t, deadletter.Filter{}, hourly), 4, "a dry run does not wait")

	started := time.Now()
	require.Equal(t, results(4, "applied"), c.replay(t, deadletter.Filter{}, func(o *inbox.Options) { o.PerSecond = 20 }))
	require.GreaterOrEqual(t, time.Since(started), 3*50*time.Millisecond, "within a key and between keys")
}

func TestAReplayKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	c.deliver(t, sick("a", 1, "bad"), sick("b", 1, "bad"), sick("c", 1, "bad"))
	c.heal()
	require.Len(t, c.replay(t, deadletter.Filter{Limit: 2}, dry), 2)
	require.Equal(t, results(2, "applied"), c.replay(t, deadletter.Filter{Limit: 2}))
	require.Equal(t, results(1, "applied"), c.replay(t, deadletter.Filter{Limit: 2}))
}

func TestAReplayIsForOneConsumer(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	e := sick("a", 1, "bad")
	c.fall("bad")
	c.deliver(t, e)
	c.heal()
	mine := c.replayer
	c.Config.Consumer = "other"
	c.open(t)
	c.deliver(t, e)
	require.Empty(t, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, e)
	c.replayer = mine
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
	c.requireEffects(t, e, e)
}

func TestReplaysThatAreRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	for want, f := range map[string]deadletter.Filter{
		"invalid_filter: the filter names another consumer":      {Consumer: "other"},
		"invalid_filter: a limit is not negative":                {Limit: -1},
		"not_waiting: only waiting dead letters can be replayed": {State: deadletter.Discarded},
	} {
		err := c.replayer.Replay(t.Context(), f, byAna)
		require.EqualError(t, err, want)
	}
	err := c.replayer.Replay(t.Context(), deadletter.Filter{}, inbox.Options{})
	require.EqualError(t, err, "missing_operator: say who replays")
}

func TestAnEditedDeadLetterIsReplayed(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	e := payload(v("a", 1), `{"value":[]}`)
	c.deliver(t, e)
	require.Equal(t, []string{"failed payload_mismatch"}, c.replay(t, deadletter.Filter{}))
	id := func(id string) []deadletter.Header { return []deadletter.Header{{Name: "ce_id", Value: []byte(id)}} }
	c.edit(t, e.ID, deadletter.Edit{Set: id("another")})
	require.Equal(t, []string{"refused id_changed"}, c.replay(t, deadletter.Filter{}))
	c.edit(t, e.ID, deadletter.Edit{Set: id(e.ID), Payload: []byte(`{"value":"mended"}`)})
	require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
	require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, e))
	require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, payload(e, `{"value":"mended"}`)))
	require.Equal(t, []inbox.Outcome{inbox.Conflict}, c.deliver(t, payload(e, `{"value":"third"}`)))
	c.requireEffects(t, e)
	require.Equal(t, []string{"ana replay failed", "ben edit", "ana replay refused", "ben edit", "ana replay applied"},
		c.List(t, `select concat_ws(' ', operator, verb, detail ->> 'outcome') from operator_action order by id`))
}

func TestABrokenRecordNeedsAnEdit(t *testing.T) {
	t.Parallel()
	right := v("a", 1)
	headers := append([]deadletter.Header{}, event.MessageHeaders(right.Message())...)
	empty := message.NewMessage("", nil)
	origin := event.Origin{Group: "local.test", Topic: "topic-1", Offset: 7}
	empty.SetContext(event.WithOrigin(t.Context(), origin))
	nameless := right
	nameless.ID = ""
	for name, msg := range map[string]*message.Message{
		"without an id": whole(t, nameless, 0), "without anything": empty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 1, nil)
			_, err := c.in.BatchMiddleware(c.handler)(t.Context(), []*message.Message{msg})
			require.NoError(t, err)
			require.Equal(t, []string{"refused missing_id"}, c.replay(t, deadletter.Filter{}))
			eventID := c.List(t, `select event_id from dead_letter`)[0]
			c.edit(t, eventID, deadletter.Edit{Set: headers, Payload: right.Data})
			require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
			c.requireEffects(t, right)
			require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, right))
			c.requireNothingWaits(t)
		})
	}
}

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

// The key does not compress: an index accepts a compressible key far beyond its limit.
func TestALongKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	key := make([]byte, 10_000)
	for i := range key {
		key[i] = byte('!' + rand.IntN(90))
	}
	long, longest := string(key[:event.MaxKeyBytes]), string(key)
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{
		inbox.Dead, inbox.Dead, inbox.Applied, inbox.Dead, inbox.Parked,
	}, c.deliver(t, v(longest, 1), v(longest, 0), v(long, 1), sick(long, 2, "bad"), v(long, 3)))
	c.heal()
	refused := "refused " + string(event.CodeInvalidKey)
	require.Equal(t, results(2, refused), c.replay(t, deadletter.Filter{Key: longest}))
	require.Equal(t, results(2, "applied"), c.replay(t, deadletter.Filter{Key: long}))
}
