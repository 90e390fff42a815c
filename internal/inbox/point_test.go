package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

const beginPoint = `insert into inbox_point (consumer, topic, partition, next_offset) values ('test', 'topic-1', 2, $1)`

// owned returns the messages as from an owner at an offset.
func owned(from int64, msgs ...*message.Message) []*message.Message {
	for _, msg := range msgs {
		origin, _ := event.OriginFrom(msg.Context())
		origin.From = new(from)
		msg.SetContext(event.WithOrigin(msg.Context(), origin))
		from = origin.Offset + 1
	}
	return msgs
}

func appended(t *testing.T, e event.Event, offset, at int64) *message.Message {
	t.Helper()
	msg := record(t, e, offset)
	origin, _ := event.OriginFrom(msg.Context())
	origin.Time = time.UnixMilli(at)
	msg.SetContext(event.WithOrigin(msg.Context(), origin))
	return msg
}

func (b *bundle) requirePoint(t *testing.T, next, at int64) {
	t.Helper()
	points, err := b.Inbox(t).ReadPoints(t.Context(), "topic-1")
	require.NoError(t, err)
	require.Equal(t, map[int32]event.Point{2: {Next: next, Time: at}}, points)
}

func TestAPointBeginsAndIsPutBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := b.Inbox(t)
	store := func(point event.Point) { require.NoError(t, in.StorePoint(t.Context(), "topic-1", 2, point)) }
	store(event.Point{Next: 7, Time: 70})
	b.requirePoint(t, 7, 70)
	store(event.Point{Next: 2}) // of an owner that was late
	b.requirePoint(t, 7, 70)
	store(event.Point{Next: 3, Time: event.ReadAgain})
	b.requirePoint(t, 3, event.ReadAgain)
	points, err := in.ReadPoints(t.Context(), "another")
	require.NoError(t, err)
	require.Empty(t, points)
}

func TestThePointMovesWithEachOutcome(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest, inbox.Strict} {
		for _, batch := range []int{1, 2, 200} {
			t.Run(fmt.Sprint(order, batch), func(t *testing.T) {
				b := shared.again(t)
				b.Config.Order, b.Config.Batch, b.Config.MaxAttempts = order, batch, 1
				acceptsOne(&b.Config)
				b.Exec(t, beginPoint, 3)
				_, handle := b.handle(t, failing(func(context.Context, pgx.Tx) error { return errors.New("ill") }))
				applied, other := v("a", 1), v("c", 1)
				other.Type = ignoredType
				for i, e := range []event.Event{applied, applied, payload(v("b", 1), `{"value":"bad"}`), v("b", 2), other} {
					offset := int64(5 + 2*i)
					_, err := handle(t.Context(), owned(offset-2, appended(t, e, offset, 100+offset)))
					require.NoError(t, err)
					b.requirePoint(t, offset+1, 100+offset)
				}
				other.ID = newEvent().ID
				many := []*message.Message{
					appended(t, v("d", 1), 20, 120), appended(t, payload(v("e", 1), `{"value":"bad"}`), 21, 121),
					appended(t, v("d", 2), 22, 122), appended(t, other, 23, 123),
				}
				_, err := handle(t.Context(), owned(14, many...))
				require.NoError(t, err)
				b.requirePoint(t, 24, 123)
			})
		}
	}
}

func TestThePointNeverMovesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, beginPoint, 0)
	_, handle := b.handle(t, effect)
	events := versions("a", 1, 2, 3)()
	var msgs []*message.Message
	for i, e := range events {
		msgs = append(msgs, appended(t, e, int64(i), int64(100+i)))
	}
	_, err := handle(t.Context(), owned(0, msgs...))
	require.NoError(t, err)
	b.requirePoint(t, 3, 102)
	_, zombie := b.handle(t, effect)
	_, err = zombie(t.Context(), owned(0, msgs[0]))
	require.NoError(t, err)
	b.requirePoint(t, 3, 102)
	_, err = zombie(t.Context(), owned(2, appended(t, events[2], 2, 77)))
	require.NoError(t, err)
	b.requirePoint(t, 3, 77)
	require.Equal(t, 3, b.Count(t, `select count(*) from ledger`))
}

func TestADatabaseThatWentBackTakesNoOutcome(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	for name, state := range map[string]string{
		"to a lower point":        `insert into inbox_point values ('test', 'topic-1', 2, 4, 0)`,
		"to a time without point": `delete from inbox_point`,
		"and its owner had died": `insert into inbox_owner values ('test', 'topic-1', 2, 'dead');
			insert into inbox_attempt (consumer, topic, partition, first_offset, last_offset, attempts)
			values ('test', 'topic-1', 2, 5, 6, 0)`,
	} {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				b := shared.again(t)
				b.Exec(t, state)
				b.Config.MaxAttempts, b.Config.Order = 1, inbox.Strict
				outcomes, transactions := 0, 0
				b.Host.OnFailure = func(context.Context, error) { transactions++ }
				b.Host.OnOutcome = func(event.Event, inbox.Outcome) { outcomes++ }
				var told strings.Builder
				b.Config.Log = slog.New(slog.NewTextHandler(&told, nil))
				in, handle := b.handle(t, effect)
				var msgs []*message.Message
				for i := range n {
					msgs = append(msgs, record(t, v("a", int64(i+1)), int64(5+i)))
				}
				handled, err := handle(t.Context(), owned(5, msgs...))
				require.ErrorIs(t, err, inbox.ErrWentBack)
				require.Zero(t, handled)
				require.Zero(t, outcomes)
				require.Equal(t, 1, transactions)
				require.NoError(t, in.Leave("topic-1", 2)(t.Context()))
				require.Zero(t, b.Count(t, `select count(*) from ledger`))
				require.Zero(t, b.Count(t, `select count(*) from inbox`))
				require.Zero(t, b.Count(t, `select count(*) from dead_letter`))
				require.Zero(t, b.Count(t, `select coalesce(max(attempts), 0) from inbox_attempt`))
				require.NotContains(t, told.String(), "attempt failed")
				require.NotContains(t, told.String(), "event settled")

				b.Exec(t, `delete from inbox_point`)
				b.Exec(t, beginPoint, 5)
				_, handle = b.handle(t, effect)
				handled, err = handle(t.Context(), owned(5, msgs...))
				require.NoError(t, err)
				require.Equal(t, n, handled)
				require.Equal(t, n, b.Count(t, `select count(*) from ledger`))
			})
		}
	}
}

// A stock Router and a replay have no position.
func TestWithoutAPositionNoPointMoves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Config.MaxAttempts = 1
	require.NoError(t, b.Deliver(t, record(t, v("a", 1), 7), effect))
	require.Zero(t, b.Count(t, `select count(*) from inbox_point`))

	ill := payload(v("b", 1), `{"value":"bad"}`)
	b.Exec(t, beginPoint, 0)
	_, handle := b.handle(t, failing(func(context.Context, pgx.Tx) error { return errors.New("ill") }))
	_, err := handle(t.Context(), owned(0, replayable(t, t.Context(), ill)...))
	require.NoError(t, err)
	b.Exec(t, `delete from inbox_point`)
	require.NoError(t, inbox.NewReplayer(b.Inbox(t), muxOf(effect).HandleMessage).
		Replay(t.Context(), deadletter.Filter{}, byAna))
	require.Contains(t, b.List(t, `select event_id from ledger`), ill.ID)
	require.Zero(t, b.Count(t, `select count(*) from inbox_point`))
}

// The event comes again with another version after its producer's restore.
func TestAKnownEventWithTheNextVersionRaisesItsKey(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 200} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, batch, nil)
			first, third := v("a", 1), v("a", 3)
			again := first
			again.Version = 2
			require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Duplicate, inbox.Applied},
				c.deliver(t, first, again, third))
			far := first
			far.Version = 5
			c.deliver(t, far)
			require.Equal(t, 3, c.Count(t, `select version from inbox_key where key = 'a'`), "4 may be missing")

			// A later event waits: the raise releases it and the key.
			first, third = v("b", 1), v("b", 3)
			c.deliver(t, first, third)
			require.Equal(t, 3, c.Count(t, `select parked_from from inbox_key where key = 'b'`))
			first.Version = 2
			require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, first))
			require.NoError(t, c.replayer.ResumeRound(t.Context()))
			require.Equal(t, 3, c.Count(t, `select version from inbox_key where key = 'b' and parked_from is null`))
			require.Zero(t, c.Count(t, `select count(*) from dead_letter where state = 'waiting'`))
		})
	}
}

func TestADeadLetterThatComesAgainRaisesNoKey(t *testing.T) {
	t.Parallel()
	for _, order := range []inbox.Order{inbox.Strict, inbox.Latest} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, 200, ordered(order))
			ill := payload(v("a", 2), `{"value":"bad"}`)
			c.fall("bad")
			c.deliver(t, v("a", 1), ill)
			require.Equal(t, []inbox.Outcome{inbox.Duplicate}, c.deliver(t, ill))
			require.Equal(t, 1, c.Count(t, `select version from inbox_key where key = 'a'`))
			c.heal()
			require.Equal(t, []string{"applied"}, c.replay(t, deadletter.Filter{}))
			require.Equal(t, 2, c.Count(t, `select version from inbox_key where key = 'a' and parked_from is null`))
		})
	}
}

func TestAStaleEventOfAStrictConsumerIsAWarning(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	for order, want := range map[inbox.Order]string{inbox.Strict: "level=WARN", inbox.Latest: "level=INFO"} {
		b := shared.again(t)
		b.Config.Order = order
		var told strings.Builder
		b.Config.Log = slog.New(slog.NewTextHandler(&told, nil))
		_, handle := b.handle(t, effect)
		_, err := handle(t.Context(), records(t, t.Context(), v("a", 1), v("a", 1)))
		require.NoError(t, err)
		require.Regexp(t, want+` msg="event settled".* outcome=stale`, told.String())
	}
}

func TestAPanicIsLoggedWithItsStack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log strings.Builder
	b.Config.Log = slog.New(slog.NewTextHandler(&log, nil))
	_, handle := b.handle(t, failing(func(context.Context, pgx.Tx) error { panic("no idea") }))
	_, err := handle(t.Context(), records(t, t.Context(), payload(v("a", 1), `{"value":"bad"}`)))
	require.NoError(t, err)
	require.Regexp(t, `level=ERROR msg="handler panicked".* panic="no idea" stack=".*TestAPanicIsLoggedWithItsStack`,
		log.String())
}
