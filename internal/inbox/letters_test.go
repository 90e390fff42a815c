package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

func replayable(t *testing.T, ctx context.Context, events ...event.Event) []*message.Message {
	t.Helper()
	msgs := records(t, ctx, events...)
	for _, msg := range msgs {
		origin, _ := event.OriginFrom(msg.Context())
		origin.Headers = nil
		msg.SetContext(event.WithOrigin(ctx, origin))
	}
	return msgs
}

func TestARedeliveryOfADeadLetter(t *testing.T) {
	t.Parallel()
	shared := setup(t)
	settle := map[deadletter.State]func(*bundle, *inbox.Inbox, *inbox.Mux) error{
		deadletter.Waiting: func(*bundle, *inbox.Inbox, *inbox.Mux) error { return nil },
		deadletter.Discarded: func(b *bundle, _ *inbox.Inbox, _ *inbox.Mux) error {
			failed := deadletter.Filter{Code: "handler_failed"}
			_, err := deadletter.NewStore(b.Pool).Discard(t.Context(), failed, audit.Change{By: "ana"})
			return err
		},
		deadletter.Replayed: func(_ *bundle, in *inbox.Inbox, mux *inbox.Mux) error {
			err := inbox.NewReplayer(in, mux.HandleMessage).Replay(t.Context(), deadletter.Filter{}, byAna)
			return err
		},
	}
	for state, settle := range settle {
		for _, order := range []inbox.Order{inbox.Unordered, inbox.Latest, inbox.Strict} {
			t.Run(fmt.Sprint(state, " ", order), func(t *testing.T) {
				b := shared.again(t)
				b.Config.Order = order
				calls, ill := 0, true
				mux := muxOf(func(ctx context.Context, tx pgx.Tx, e event.Event, data testData) error {
					if calls++; ill {
						return inbox.Permanent(errors.New("ill"))
					}
					return effect(ctx, tx, e, data)
				})
				outcomes := b.noteOutcomes()
				in, e := b.Inbox(t), v("key-1", 1)
				require.NoError(t, deliver(in, mux, replayable(t, t.Context(), e)[0]))
				ill = false
				require.NoError(t, settle(b, in, mux))
				require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where state = $1`, string(state)))
				calls, *outcomes = 0, nil
				require.NoError(t, deliver(in, mux, record(t, e, 1)))
				require.NoError(t, deliver(in, mux, record(t, payload(e, `{"value":"b"}`), 2)))
				require.Equal(t, []inbox.Outcome{inbox.Duplicate, inbox.Conflict}, *outcomes)
				require.Zero(t, calls)
				require.Equal(t, []string{"handler_failed", "id_conflict"}, b.List(t, `select code from dead_letter order by id`))
			})
		}
	}
}

// Each attempt takes the next number. An operator sets a sequence that is far behind.
func TestASequenceOfDeadLettersThatWasSetBack(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]event.Event{
		"parked":   v("key-2", 3),
		"given up": payload(v("key-2", 1), `{"value":[]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Config.Order = inbox.Strict
			for i, e := range versions("key-1", 2, 3, 4)() {
				require.NoError(t, b.Deliver(t, record(t, e, int64(i)), effect))
			}
			b.Exec(t, `select setval('public.dead_letter_id_seq', 1)`)
			good := v("key-3", 1)
			b.run(t, 200, effect, records(t, t.Context(), bad, good))
			require.Equal(t, 1, b.Count(t, `select count(*) from dead_letter where event_id = $1`, bad.ID))
			require.Equal(t, 4, b.Count(t, `select count(*) from dead_letter`))
			require.Equal(t, 1, b.Effects(t, good.ID))
		})
	}
}
