package inbox_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
)

// ownerDied is the row of a process that did not leave its partition.
const ownerDied = `insert into inbox_owner values ('test', 'topic-1', 2, 'a dead process')`

const crashBatch = 20

// Suspects run alone in the process, so the tests from here on are not parallel.
func TestACrashLoopEndsInADeadLetter(t *testing.T) {
	b := setup(t)
	for _, bad := range []int{0, crashBatch / 2, crashBatch - 1} {
		for _, attempts := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d %d", bad, attempts), func(t *testing.T) {
				b := b.again(t)
				b.Config.Order, b.Config.MaxAttempts, b.Config.Batch = inbox.Strict, attempts, crashBatch
				events := make([]event.Event, 2*crashBatch)
				for i := range events {
					events[i] = v(fmt.Sprint("key-", i%7), int64(i/7+1))
				}
				require.LessOrEqual(t, b.crashLoop(t, events, events[bad].ID), 2+attempts)
				require.Equal(t, []string{events[bad].ID}, b.List(t,
					`select event_id from dead_letter where code = 'process_died' and attempts = $1`, attempts))
				parked := b.Count(t, `select count(*) from dead_letter where class = 'parked'`)
				require.Equal(t, 1+parked, b.Count(t, `select count(*) from dead_letter`))
				require.Equal(t, len(events)-1-parked, b.Count(t, `select count(*) from ledger`))
				require.Equal(t, len(events)-1-parked, b.Count(t, `select count(distinct event_id) from ledger`))
				require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
			})
		}
	}
}

// A process ends as its goroutine does: deferred calls roll back, as the server would. crashLoop returns the number of
// deaths.
func (b *bundle) crashLoop(t *testing.T, events []event.Event, deadly string) (deaths int) {
	t.Helper()
	msgs := records(t, t.Context(), events...)
	for from := 0; from < len(msgs); {
		require.Less(t, deaths, 20)
		deaths++
		_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
			if e.ID == deadly {
				runtime.Goexit()
			}
			return effect(ctx, tx, e, data)
		})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for from < len(msgs) {
				handled, err := handle(t.Context(), msgs[from:min(from+crashBatch, len(msgs))])
				if err != nil {
					t.Error(err)
					return
				}
				from += handled
			}
			deaths-- // it survived
		}()
		<-ended
	}
	return deaths
}

func TestSuspicionLastsUntilSomethingNewIsCommitted(t *testing.T) {
	b := setup(t)
	b.Config.Batch = 2
	events := versions("key-1", 1, 2, 3, 4, 5, 6)()
	counted := 0
	handler := func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		counted += b.Count(t, `select count(*) from inbox_attempt`)
		return effect(ctx, tx, e, data)
	}
	first, handle := b.handle(t, handler)
	_, err := handle(t.Context(), records(t, t.Context(), events[0]))
	require.NoError(t, err)
	require.NoError(t, first.Leave("topic-1", 2)(t.Context()))
	_, handle = b.handle(t, handler)
	_, err = handle(t.Context(), records(t, t.Context(), events[:2]...))
	require.NoError(t, err)
	require.Zero(t, counted, "a clean end leaves no suspect")

	_, handle = b.handle(t, handler)
	_, err = handle(t.Context(), records(t, t.Context(), events...))
	require.NoError(t, err)
	require.Equal(t, 2, counted, "the batch behind the duplicates, and no later one")
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
	require.Equal(t, 6, b.Count(t, `select count(*) from ledger`))
}

func TestAPartitionThatCameBackIsNotLeftLate(t *testing.T) {
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
	require.NoError(t, in.Leave("topic-1", 2)(t.Context()), "a partition that is not taken can be left")
}

func TestAnAttemptThatIsBrokenOffIsNoDeath(t *testing.T) {
	b := setup(t)
	for _, deaths := range []int{0, 1} {
		b := b.again(t)
		b.Config.MaxAttempts = 2
		b.Exec(t, ownerDied)
		if deaths > 0 {
			b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 2, 1, 1, $1)`, deaths)
		}
		e := newEvent()
		for range 3 {
			ctx, stop := context.WithCancel(t.Context())
			in, handle := b.handle(t, func(ctx context.Context, _ pgx.Tx, _ event.Event, _ testData) error {
				require.Equal(t, deaths+1, b.Count(t, `select attempts from inbox_attempt`))
				stop()
				return ctx.Err()
			})
			_, err := handle(ctx, records(t, ctx, e, e)[1:])
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, in.Close(t.Context()))
			require.Equal(t, deaths, b.Count(t, `select coalesce(sum(attempts), 0) from inbox_attempt`))
		}
		in, handle := b.handle(t, effect)
		_, err := handle(t.Context(), records(t, t.Context(), e, e)[1:])
		require.NoError(t, err)
		require.NoError(t, in.Close(t.Context()))
		require.Equal(t, 1, b.Effects(t, e.ID))
		require.Zero(t, b.Count(t, `select (select count(*) from inbox_attempt) + (select count(*) from inbox_owner)`))
	}
}

// Records without an inbox row are final again: types without a handler, no id, old, stale, conflicts.
func TestARedeliveryEndsNoSuspicion(t *testing.T) {
	b := setup(t)
	b.Exec(t, `update inbox_horizon set remembers_from = '2025-01-01'`)
	b.Config.Batch, b.Config.Order = 1, inbox.Latest
	b.Config.Accepts = acceptsTestType
	ignored, old := newEvent(), at(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	ignored.Type = "com.example.other.v1"
	known, stale := v("key-1", 2), v("key-1", 1)
	events := []event.Event{ignored, old, known, stale, payload(known, `{"value":"b"}`), newEvent()}
	msgs := func(more ...event.Event) []*message.Message {
		msgs := records(t, t.Context(), append(events, more...)...)
		msgs[len(events)-1].UUID = ""
		return msgs
	}
	b.run(t, 1, effect, msgs())
	letters := b.Count(t, `select count(*) from dead_letter`)
	require.Equal(t, 3, letters)

	b.Exec(t, ownerDied)
	var counted []string
	fresh := versions("key-2", 1, 2)()
	b.run(t, 1, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		if b.Count(t, `select count(*) from inbox_attempt`) > 0 {
			counted = append(counted, e.ID)
		}
		return effect(ctx, tx, e, data)
	}, msgs(fresh...))
	require.Equal(t, []string{fresh[0].ID}, counted, "the first new one")
	require.Equal(t, letters, b.Count(t, `select count(*) from dead_letter`))
	require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
}

// Later records' and other partitions' counts stay.
func TestCountsThatAreLeftGoWithTheNextSuspect(t *testing.T) {
	b := setup(t)
	mux := muxOf(effect)
	events := versions("key-1", 1, 2)()
	b.Exec(t, `insert into inbox_attempt select 'test', 'topic-1', 2, n, n, 1 from unnest(array[1, 3]) as n`)
	b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 7, 1, 1, 1)`)
	b.Exec(t, ownerDied)
	in := b.Inbox(t)
	const selectCounts = `select partition || '/' || first_offset from inbox_attempt order by partition, first_offset`
	require.NoError(t, deliver(in, mux, record(t, events[0], 0)))
	require.Equal(t, []string{"2/1", "2/3", "7/1"}, b.List(t, selectCounts))
	require.NoError(t, deliver(in, mux, record(t, events[1], 2)))
	require.Equal(t, []string{"2/3", "7/1"}, b.List(t, selectCounts))
}

func TestSuspicionOutlivesAnOwnerThatDidNotReachIt(t *testing.T) {
	b := setup(t)
	b.Exec(t, ownerDied)
	b.Exec(t, `insert into inbox_attempt values ('test', 'topic-1', 2, 2, 3, 1)`)
	events := versions("key-1", 1, 2, 3, 4, 5)()
	msgs := records(t, t.Context(), events...)
	for _, end := range []func(in *inbox.Inbox) error{
		func(in *inbox.Inbox) error { return in.Leave("topic-1", 2)(t.Context()) },
		func(in *inbox.Inbox) error { return in.Close(t.Context()) },
	} {
		in, handle := b.handle(t, effect)
		_, err := handle(t.Context(), msgs[:1])
		require.NoError(t, err)
		require.NoError(t, end(in))
		require.Equal(t, 1, b.Count(t, `select count(*) from inbox_owner`))
	}
	counts := make([][]string, 0, len(events))
	_, handle := b.handle(t, func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
		counts = append(counts, b.List(t, `select first_offset || ' ' || attempts from inbox_attempt order by first_offset`))
		return effect(ctx, tx, e, data)
	})
	_, err := handle(t.Context(), msgs)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1 1", "2 1"}, {"2 2"}, {"3 1"}, {}}, counts)
}
