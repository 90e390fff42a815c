package inbox_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
)

// A dead letter holds its key, what comes behind it parks, other keys go on; a replay runs the key in order, and then
// it flows again.
func TestADeadLetterHoldsItsKeyUntilItIsReplayed(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 200} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, batch, nil)
			a := []cloudevent.Event{v("a", 1), sick("a", 2, "bad"), v("a", 3), v("a", 4), v("a", 5)}
			b := []cloudevent.Event{v("b", 1), v("b", 2)}
			c.fall("bad")
			require.Equal(t, []inbox.Outcome{
				inbox.Applied, inbox.Dead, inbox.Applied, inbox.Parked, inbox.Applied, inbox.Parked,
			}, c.deliver(t, a[0], a[1], b[0], a[2], b[1], a[3]))
			c.requireEffects(t, a[0], b[0], b[1])

			c.heal()
			rehearsed := c.replay(t, operate.Filter{Code: inbox.CodeHandlerFailed}, dry)
			require.Equal(t, replay.Report{Matched: 1, Would: 1}, rehearsed)
			c.requireEffects(t, a[0], b[0], b[1])
			report := c.replay(t, operate.Filter{Code: inbox.CodeHandlerFailed})
			require.Equal(t, replay.Report{Matched: 3, Applied: 3}, report, "what was parked follows")
			c.requireEffects(t, a[0], b[0], b[1], a[1], a[2], a[3])
			require.Equal(t, 4, c.Count(t, `select version from inbox_watermark where key = 'a'`))

			require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, a[4]), "the key flows")
			require.Equal(t, replay.Report{}, c.replay(t, operate.Filter{}), "nothing is left")
			require.Equal(t, []inbox.Outcome{inbox.Duplicate, inbox.Duplicate}, c.deliver(t, a[1], a[2]))
			c.requireEffects(t, a[0], b[0], b[1], a[1], a[2], a[3], a[4])
			require.Equal(t, 3, c.Count(t, `select count(*) from operator_action
				where verb = 'replay' and operator = 'ana' and reason = 'fixed' and before = 'waiting'
					and after = 'replayed' and detail ->> 'outcome' = 'applied'`))
		})
	}
}

func TestAKeyStopsAtItsFirstFailureAndOthersGoOn(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	a := []cloudevent.Event{sick("a", 1, "bad"), sick("a", 2, "worse"), v("a", 3)}
	b := []cloudevent.Event{sick("b", 1, "bad"), v("b", 2)}
	c.fall("bad")
	c.deliver(t, append(a, b...)...)
	c.fall("worse")
	report := c.replay(t, operate.Filter{})
	require.Equal(t, 1, report.Failed)
	require.Equal(t, 3, report.Applied)
	require.Equal(t, []string{a[1].ID, inbox.CodeHandlerFailed},
		[]string{report.Problems[0].EventID, report.Problems[0].Code})
	c.requireEffects(t, a[0], b[0], b[1])
	require.Equal(t, []string{a[1].ID + " handler_failed 2 1", a[2].ID + " parked_behind 1 0"}, c.List(t,
		`select event_id || ' ' || code || ' ' || attempts || ' ' || replays from dead_letter where state = 'waiting'
		order by version`))
	c.heal()
	require.Equal(t, 2, c.replay(t, operate.Filter{}).Applied)
	c.requireEffects(t, a[0], b[0], b[1], a[1], a[2])
}

// Event 1 is dead, 2 is applied because the consumer lets it pass, 1 is replayed: it must not overwrite 2.
func TestAReplayIsNeverOverNewerState(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, func(cfg *inbox.Config) { cfg.OnDead = inbox.DeadPass })
	dead, next := sick("a", 1, "bad"), v("a", 2)
	c.fall("bad")
	require.Equal(t, []inbox.Outcome{inbox.Dead, inbox.Applied}, c.deliver(t, dead, next))
	c.heal()
	require.Equal(t, replay.Report{Matched: 1, Stale: 1}, c.replay(t, operate.Filter{}))
	c.requireEffects(t, next)
	require.Equal(t, []string{"replayed stale"}, c.List(t, `select state || ' ' || outcome from dead_letter`))
}

func TestWhatDoesNotHoldItsKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	first, second := v("a", 1), v("a", 2)
	old := at(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))
	old.Key, old.Version = "a", 1
	c.Exec(t, `update inbox_horizon set remembers_from = '2020-01-01'`)
	c.deliver(t, first, payload(first, `{"value":"other"}`), old)
	broken := v("a", 2)
	broken.Source = ""
	c.deliver(t, broken)
	require.Equal(t, []string{"id_conflict", "too_old", "missing_source"},
		c.List(t, `select code from dead_letter where not holds order by id`))
	require.Equal(t, []inbox.Outcome{inbox.Applied}, c.deliver(t, second))

	report := c.replay(t, operate.Filter{})
	codes := make([]string, len(report.Problems))
	for i, p := range report.Problems {
		codes[i] = p.Outcome + " " + p.Code
	}
	require.ElementsMatch(t, []string{"refused id_conflict", "refused too_old", "refused missing_source"}, codes)
	require.Equal(t, 3, c.Count(t, `select count(*) from dead_letter where state = 'waiting' and replays = 0`))
	c.requireEffects(t, first, second)

	forcedOne := c.replay(t, operate.Filter{Code: inbox.CodeTooOld}, forced)
	require.Equal(t, 1, forcedOne.Stale, "the version guard still holds")
	require.Equal(t, 1, c.Count(t, `select count(*) from operator_action where detail ->> 'forced' = 'true'`))
}

// What the inbox has forgotten is known by its dead letter, if its id was taken with it.
func TestALetterOutlivesTheMemoryOfTheInbox(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	e := sick("a", 1, "bad")
	c.fall("bad")
	c.deliver(t, e)
	c.Exec(t, `delete from inbox`)
	c.Exec(t, `update inbox_horizon set remembers_from = now() + interval '1 day'`)
	c.heal()
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
	require.Equal(t, []inbox.Outcome{inbox.Expired}, c.deliver(t, e))
	c.requireEffects(t, e)
}

func TestAReplayThatFailsTooOftenIsRefused(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.again.MaxReplays = 2
	c.open(t)
	e := sick("a", 1, "bad")
	c.fall("bad")
	c.deliver(t, e)
	for range 2 {
		require.Equal(t, 1, c.replay(t, operate.Filter{}).Failed)
	}
	c.heal()
	report := c.replay(t, operate.Filter{})
	require.Equal(t, replay.CodeReplayLimit, report.Problems[0].Code)
	require.Equal(t, 1, c.replay(t, operate.Filter{}, forced).Applied)
	c.requireEffects(t, e)
}

func TestWhatWaitsBehindAnUnpickedLetterIsRefused(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	first, second := sick("a", 1, "bad"), v("a", 2)
	c.fall("bad")
	c.deliver(t, first, second)
	c.heal()
	for _, options := range [][]func(*replay.Options){{dry}, nil} {
		report := c.replay(t, operate.Filter{EventID: second.ID}, options...)
		require.Equal(t, 1, report.Refused)
		require.Equal(t, replay.CodeBehind, report.Problems[0].Code)
	}
	c.requireEffects(t)
	_, err := operate.NewStore(c.Pool).Discard(t.Context(), operate.Filter{EventID: first.ID},
		audit.Change{By: "ana"})
	require.NoError(t, err)
	require.Equal(t, 1, c.replay(t, operate.Filter{EventID: second.ID}).Applied, "a discard releases the key")
	c.requireEffects(t, second)
}

// Only the lower bound can be exact here, where a database is involved; replay/ordered_test.go has the spacing itself.
// A slow machine makes it longer.
func TestAReplayKeepsToItsRate(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	c.deliver(t, sick("a", 1, "bad"), v("a", 2), sick("b", 1, "bad"), sick("c", 1, "bad"))
	c.heal()
	hourly := func(o *replay.Options) { o.DryRun, o.Pace = true, replay.NewPace(1./3600) }
	rehearsed := c.replay(t, operate.Filter{Code: inbox.CodeHandlerFailed}, hourly)
	require.Equal(t, 3, rehearsed.Would, "a rehearsal does not wait for the pace")

	started := time.Now()
	report := c.replay(t, operate.Filter{}, func(o *replay.Options) { o.Pace = replay.NewPace(20) })
	require.Equal(t, 4, report.Applied)
	require.GreaterOrEqual(t, time.Since(started), 3*50*time.Millisecond, "within a key and from one to the next")
}

// A rehearsal says what the replay with the same limit will do.
func TestAReplayKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	c.fall("bad")
	c.deliver(t, sick("a", 1, "bad"), sick("b", 1, "bad"), sick("c", 1, "bad"))
	c.heal()
	two := operate.Filter{Limit: 2}
	require.Equal(t, replay.Report{Matched: 2, Would: 2}, c.replay(t, two, dry))
	require.Equal(t, replay.Report{Matched: 1, Would: 1}, c.replay(t, operate.Filter{Limit: 1}, dry))
	require.Equal(t, replay.Report{Matched: 2, Applied: 2}, c.replay(t, two))
	require.Equal(t, replay.Report{Matched: 1, Applied: 1}, c.replay(t, two))
}

// Replaying touches one consumer: the other one, which was well, hears nothing.
func TestAReplayIsForOneConsumer(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	e := sick("a", 1, "bad")
	c.fall("bad")
	c.deliver(t, e)
	c.heal()
	mine := c.taker
	c.Config.Consumer = "other"
	c.open(t)
	c.deliver(t, e)
	require.Equal(t, replay.Report{}, c.replay(t, operate.Filter{}))
	c.requireEffects(t, e)
	c.taker = mine
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
	c.requireEffects(t, e, e)
	_, err := c.taker.Replay(t.Context(), operate.Filter{Consumer: "other"}, replay.Options{By: "ana"})
	require.ErrorContains(t, err, operate.CodeInvalidFilter)
}

// An edit puts another record in the place of the one that came; that one stays, and its redelivery is a duplicate.
func TestAnEditedLetterIsReplayed(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	store := operate.NewStore(c.Pool)
	e := payload(v("a", 1), `{"value":[]}`)
	c.deliver(t, e)
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Failed)
	letters, err := store.List(t.Context(), operate.Filter{})
	require.NoError(t, err)
	other := letters[0].Headers[0]
	require.Equal(t, "ce_id", other.Name)
	renamed := []deadletter.Header{{Name: "ce_id", Value: []byte("another")}}
	_, err = store.Edit(t.Context(), letters[0].ID, operate.Edit{Set: renamed}, audit.Change{By: "ben"})
	require.NoError(t, err)
	require.Equal(t, replay.CodeIDChanged, c.replay(t, operate.Filter{}).Problems[0].Code)

	mended := []byte(`{"value":"mended"}`)
	edit := operate.Edit{Set: letters[0].Headers, Payload: mended}
	edited, err := store.Edit(t.Context(), letters[0].ID, edit, audit.Change{By: "ben", Reason: "array"})
	require.NoError(t, err)
	require.Equal(t, e.Data, edited.Payload, "what came stays")
	require.Equal(t, "ben", edited.Edited.By)
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
	require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, e))
	c.requireEffects(t, e)
	_, history, err := store.Get(t.Context(), letters[0].ID, false)
	require.NoError(t, err)
	verbs := make([]string, len(history))
	for i, a := range history {
		verbs[i] = a.By + " " + a.Verb + " " + a.Detail["outcome"]
	}
	require.Equal(t, []string{
		"ana replay failed", "ben edit ", "ana replay refused", "ben edit ", "ana replay applied",
	}, verbs)
}

// A record that is no event is refused until an operator has edited it into one.
func TestAnUndecodableRecordNeedsAnEdit(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	store := operate.NewStore(c.Pool)
	e := v("a", 1)
	right := e.Message()
	e.ID = ""
	c.deliver(t, e)
	require.Equal(t, "missing_id", c.replay(t, operate.Filter{}).Problems[0].Code)
	letters, err := store.List(t.Context(), operate.Filter{Code: "missing_id"})
	require.NoError(t, err)
	headers := []deadletter.Header{}
	headers = append(headers, cloudevent.MessageHeaders(right)...)
	_, err = store.Edit(t.Context(), letters[0].ID, operate.Edit{Set: headers}, audit.Change{By: "ben"})
	require.NoError(t, err)
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
	require.Equal(t, 1, c.Effects(t, right.UUID))
	e.ID = right.UUID
	require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, e), "its id is taken")
}

// A damaged batch is filed with what there is of it, which is no record: an operator edits in what it held.
func TestADamagedBatchIsMendedByHand(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 1, nil)
	e := v("a", 1)
	msg := message.NewMessage("", nil)
	msg.SetContext(cloudevent.WithOrigin(t.Context(), cloudevent.Origin{
		Group: "local.test", Topic: "topic-1", Offset: 7, LastOffset: 9, Unreadable: errors.New("CRC"),
		Damaged: []byte{0, 1, 0xff}, DamagedSize: 5,
	}))
	_, err := c.in.BatchMiddleware(c.next)(t.Context(), []*message.Message{msg})
	require.NoError(t, err)
	store := operate.NewStore(c.Pool)
	letters, err := store.List(t.Context(), operate.Filter{Code: "unreadable"})
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, []byte{0, 1, 0xff}, letters[0].Payload)
	require.Contains(t, letters[0].Error, "offsets 7 to 9: CRC (kept: the first 3 of 5 bytes)")
	require.Equal(t, "unreadable", c.replay(t, operate.Filter{}).Problems[0].Code)

	var headers []deadletter.Header
	headers = append(headers, cloudevent.MessageHeaders(e.Message())...)
	_, err = store.Edit(t.Context(), letters[0].ID, operate.Edit{Set: headers, Payload: e.Data},
		audit.Change{By: "ben"})
	require.NoError(t, err)
	require.Equal(t, 1, c.replay(t, operate.Filter{}).Applied)
	c.requireEffects(t, e)
}
