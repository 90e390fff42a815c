package inbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/inboxtest"
)

// Leaving a partition in good order leaves no suspicion; ending without does, for as many events as were under way.
func TestSuspicionLastsAsLongAsItMust(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.Batch = 2
	events := versions("key-1", 1, 2, 3, 4, 5, 6)()
	written := func(handler *int) handlerFunc {
		return func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
			*handler += b.Count(t, `select count(*) from inbox_attempt`)
			return effect(ctx, tx, e, data)
		}
	}
	counted := 0
	first, handle := b.handle(t, written(&counted))
	_, err := handle(t.Context(), records(t, t.Context(), events[0]))
	require.NoError(t, err)
	require.NoError(t, first.Leave("topic-1", 2)(t.Context()))
	_, handle = b.handle(t, written(&counted))
	_, err = handle(t.Context(), records(t, t.Context(), events[:2]...))
	require.NoError(t, err)
	require.Zero(t, counted, "a clean end leaves no suspect")

	_, handle = b.handle(t, written(&counted)) // the last one did not leave
	_, err = handle(t.Context(), records(t, t.Context(), events...))
	require.NoError(t, err)
	require.Equal(t, 2, counted, "the two that may have been under way, not the processed ones, not the later ones")
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
	require.Equal(t, 6, b.Count(t, `select count(*) from ledger`))
}

// A partition that is left with work under way is no clean end, even when the process that left it ends cleanly.
func TestAnAbandonedPartitionStaysSuspicious(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.Batch = 1
	in, handle := b.handle(t, effect)
	_, err := handle(t.Context(), records(t, t.Context(), v("key-1", 1)))
	require.NoError(t, err)
	in.Abandon("topic-1", 2)
	require.NoError(t, in.Close(t.Context()))
	require.Equal(t, 1, b.Count(t, `select in_flight from inbox_owner`))
	_, err = handle(t.Context(), records(t, t.Context(), v("key-1", 2)))
	require.NoError(t, err, "the same process may get it back")
	require.NoError(t, in.Close(t.Context()))
	require.Zero(t, b.Count(t, `select count(*) from inbox_owner`))
}

// A partition may come back before the database has heard that it was left: then it is not left.
func TestAPartitionThatCameBackIsNotLeftLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in, handle := b.handle(t, effect)
	_, err := handle(t.Context(), records(t, t.Context(), v("key-1", 1)))
	require.NoError(t, err)
	record := in.Leave("topic-1", 2)
	_, err = handle(t.Context(), records(t, t.Context(), v("key-1", 2)))
	require.NoError(t, err)
	require.NoError(t, record(t.Context()))
	require.Equal(t, 1, b.Count(t, `select count(*) from inbox_owner`), "else a crash from here on would find no suspects")
	require.NoError(t, in.Close(t.Context()))
	require.Zero(t, b.Count(t, `select count(*) from inbox_owner`))
	require.NoError(t, in.Leave("topic-1", 2)(t.Context()), "what is not taken can be left")
}

// A suspect whose handling is broken off, as often as it may be, has ended no process.
func TestAnAttemptThatIsBrokenOffIsNoDeath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.MaxAttempts = 1
	e := newEvent()
	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 5)`)
	in, stops := b.Inbox(t), 0
	mux := inbox.NewMux()
	var stop context.CancelFunc
	inbox.Handle(mux, testEvent, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
		if stops < 3 {
			stops++
			stop()
			return ctx.Err()
		}
		return effect(ctx, tx, e, data)
	})
	for range 3 {
		msg := record(t, e, 1)
		ctx, cancel := context.WithCancel(msg.Context())
		stop = cancel
		msg.SetContext(ctx)
		require.ErrorIs(t, deliver(in, mux, msg), context.Canceled)
		require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`), "who handles it next may not suspect it")
	}
	require.NoError(t, deliver(in, mux, record(t, e, 1)))
	require.Equal(t, 1, b.Effects(t, e.ID))
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
}

// What came to its end before the last owner died uses up no suspicion, though the inbox remembers nothing of it:
// events that the consumer has no use for, records without an id, and events that are older than it remembers.
func TestWhatCameToItsEndBeforeUsesUpNoSuspicion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `update inbox_horizon set remembers_from = '2025-01-01'`)
	b.Config.Batch = 2
	b.Config.Handlers = inboxtest.Only(testType)
	ignored, poison, old := newEvent(), newEvent(), at(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	ignored.Type = "com.example.other.v1"
	before := func() (msgs []*message.Message) {
		for i := range 9 {
			msg := record(t, []cloudevent.Event{ignored, poison, old}[i%3], int64(i))
			if i%3 == 1 {
				msg.UUID = ""
			}
			msgs = append(msgs, msg)
		}
		return msgs
	}
	var counted []string
	handler := func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
		if b.Count(t, `select count(*) from inbox_attempt`) > 0 {
			counted = append(counted, e.ID)
		}
		return effect(ctx, tx, e, data)
	}
	b.run(t, b.Config.Batch, handler, before())
	require.Equal(t, 1+3, b.Count(t, `select count(*) from dead_letter`), "the old one once, the others by their offsets")

	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 2)`)
	msgs, events := before(), versions("key-1", 1, 2, 3)()
	for i, e := range events {
		msgs = append(msgs, record(t, e, int64(len(msgs)+i)))
	}
	b.run(t, b.Config.Batch, handler, msgs)
	require.Equal(t, ids(events[:2]...), counted, "the two that may have been under way")
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
}

// The last attempt that a suspect may have is spent. Before its dead letter is written another owner, who suspects
// nothing, has processed it.
func TestASuspectThatHasATwinLeavesNoCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.MaxAttempts = 1
	e, mux := newEvent(), inbox.NewMux()
	inbox.Handle(mux, testEvent, effect)
	other := b.Inbox(t)
	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 1)`)
	b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 2, 1, 1, now())`)
	var outcomes []inbox.Outcome
	b.Config.Host = &inboxtest.Host{
		OnOutcome: func(_ cloudevent.Event, o inbox.Outcome) { outcomes = append(outcomes, o) },
	}
	b.Config.Validate = func(cloudevent.Event) error { // between the count and the dead letter
		m := e.Message()
		m.SetContext(t.Context())
		require.NoError(t, deliver(other, mux, m))
		return nil
	}
	require.NoError(t, deliver(b.Inbox(t), mux, record(t, e, 1)))
	require.Equal(t, []inbox.Outcome{inbox.Duplicate}, outcomes)
	require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
}

// What an owner who suspected nothing left behind goes with the next suspect that comes to an end.
func TestCountsThatAreLeftBehindGoWithTheNextSuspect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mux := inbox.NewMux()
	inbox.Handle(mux, testEvent, effect)
	events := versions("key-1", 1, 2)()
	first := b.Inbox(t)
	require.NoError(t, deliver(first, mux, record(t, events[0], 1)))
	require.NoError(t, first.Leave("topic-1", 2)(t.Context()))
	b.Exec(t, `insert into inbox_attempt select 'test', 'topic-1', 2, n, 1, now() from unnest(array[1, 3]) as n`)
	b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 7, 1, 1, now())`)

	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 5)`)
	second := b.Inbox(t)
	require.NoError(t, deliver(second, mux, record(t, events[0], 1)))
	require.Equal(t, 3, b.Count(t, `select count(*) from inbox_attempt`))
	require.NoError(t, deliver(second, mux, record(t, events[1], 2)))
	require.Equal(t, []string{"2/3", "7/1"}, b.List(t,
		`select partition || '/' || record_offset from inbox_attempt order by partition`), "not those still to come")
}

const selectRanges = `
select concat_ws(' ', record_offset || '-' || last_offset, attempts, owner is null)
from inbox_attempt order by record_offset`

// A range in which a process ended runs again in halves, each by itself and counted, and what one half proves harmless
// is not asked of it again.
func TestARangeThatEndedAProcessIsHalved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 200)`)
	b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 2, 0, 1, now(), 4, 'a dead process')`)
	events := versions("key-1", 1, 2, 3, 4, 5, 6)()
	seen := map[string]string{}
	in, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
		seen[e.ID] = strings.Join(b.List(t, selectRanges), ", ")
		return effect(ctx, tx, e, data)
	})
	_, err := handle(t.Context(), records(t, cloudevent.WithLogEnd(t.Context(), 5), events...))
	require.NoError(t, err)
	var told []string
	for _, e := range events {
		told = append(told, seen[e.ID])
	}
	first, rest := "0-2 2 f, 3-4 1 t", "3-4 2 f"
	require.Equal(t, []string{first, first, first, rest, rest, ""}, told, "and the last one was written later")
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
	require.NoError(t, in.Close(t.Context()))
	require.Zero(t, b.Count(t, `select count(*) from inbox_owner`))
}

// What was written after a process began to read was under way nowhere before, so the first event after a quiet time is
// no suspect though the last owner was killed.
func TestWhatWasWrittenLaterIsNoSuspect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 200)`)
	counted := 0
	in, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
		counted += b.Count(t, `select count(*) from inbox_attempt`)
		return effect(ctx, tx, e, data)
	})
	msgs := records(t, cloudevent.WithLogEnd(t.Context(), 2), versions("key-1", 1, 2, 3, 4)()...)
	_, err := handle(t.Context(), msgs[2:])
	require.NoError(t, err)
	require.Zero(t, counted)
	require.NoError(t, in.Close(t.Context()))
	require.Zero(t, b.Count(t, `select count(*) from inbox_owner`))
}

// An owner that leaves in good order before it has come to what killed the one before leaves the suspicion to the next.
func TestASuspicionOutlivesAnOwnerThatDidNotComeToIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 3)`)
	b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 2, 2, 1, now(), 3, 'a dead process')`)
	events := versions("key-1", 1, 2, 3, 4)()
	msgs := records(t, t.Context(), events...)
	for _, end := range []func(in *inbox.Inbox) error{
		func(in *inbox.Inbox) error { return in.Leave("topic-1", 2)(t.Context()) },
		func(in *inbox.Inbox) error { return in.Close(t.Context()) },
	} {
		in, handle := b.handle(t, effect)
		_, err := handle(t.Context(), msgs[:1])
		require.NoError(t, err)
		require.NoError(t, end(in))
		require.Equal(t, 2, b.Count(t, `select in_flight from inbox_owner`))
		require.Equal(t, []string{"2-3 1 f"}, b.List(t, selectRanges))
	}
	counted := map[string]int{}
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
		counted[e.ID] = b.Count(t, `select max(attempts) from inbox_attempt`)
		return effect(ctx, tx, e, data)
	})
	_, err := handle(t.Context(), msgs)
	require.NoError(t, err)
	require.Equal(t, map[string]int{events[1].ID: 1, events[2].ID: 2, events[3].ID: 2}, counted)
}

// Two connections are all that a range needs that ended a process, and one all others: requests that use the same pool
// are not starved.
func TestSuspectsNeedTwoConnections(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process', 2)`)
	b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 2, 2, 1, now(), 3, 'a dead process')`)
	pool := b.Pool
	b.onOneConnection(t)
	most := int32(0)
	handler := func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, data testData) error {
		most = max(most, b.Config.Pool.Stat().AcquiredConns())
		return effect(ctx, tx, e, data)
	}
	_, handle := b.handle(t, handler)
	msgs := records(t, t.Context(), versions("key-1", 1, 2, 3, 4)()...)
	_, err := handle(t.Context(), msgs[:2])
	require.NoError(t, err)
	require.EqualValues(t, 1, most)
	b.Config.Pool = pool
	_, handle = b.handle(t, handler)
	_, err = handle(t.Context(), msgs)
	require.NoError(t, err)
	require.EqualValues(t, 2, most)
}

// A delivery that ends before its attempt could be counted has failed, whatever it would have come to.
func TestADeliveryThatEndsBeforeItsAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.Batch = 1
	b.Exec(t, `insert into inbox_owner (consumer, topic, partition, owner, in_flight)
		values ('test', 'topic-1', 2, 'a dead process', 1)`)
	b.Exec(t, `alter table inbox_attempt add check (false)`)
	impatient, stop := context.WithCancel(t.Context())
	b.Host.OnPause = func(context.Context, error) { stop() }
	var outcomes []inbox.Outcome
	b.Host.OnOutcome = func(_ cloudevent.Event, o inbox.Outcome) { outcomes = append(outcomes, o) }
	_, handle := b.handle(t, effect)
	handled, err := handle(impatient, records(t, impatient, newEvent()))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, handled)
	require.Equal(t, []inbox.Outcome{inbox.Failed}, outcomes)
	require.Zero(t, b.Count(t, `select count(*) from ledger`))
}
