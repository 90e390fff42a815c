package relay

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/outbox/window"
)

func records(keys ...string) []window.Record {
	list := make([]window.Record, len(keys))
	for i, key := range keys {
		list[i] = window.Record{Position: int64(i + 1), Event: cloudevent.Event{Topic: testTopic, ID: key, Key: key}}
	}
	return list
}

// What a key's failed record is followed by counts as not taken, even if the publisher says otherwise: it is sent
// again, behind it.
func TestWhatFollowsAFailureIsHeldBack(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	r := &Relay{
		metrics: newMetrics(nil), cfg: Config{PublishTimeout: testTimeout},
		publisher: messagePublisher{funcPublisher(func(context.Context, string, ...*message.Message) error {
			return &partialError{Failed: map[int]error{2: failed, 4: failed}}
		})},
	}
	f := r.launch(t.Context(), records("a", "b", "a", "c", "b", "a"))
	require.NoError(t, f.wait(t.Context(), testTimeout))
	require.Equal(t, []error{nil, nil, failed, nil, failed, errBehind}, f.results)
}

type funcPublisher func(ctx context.Context, topic string, msgs ...*message.Message) error

func (p funcPublisher) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	return p(ctx, topic, msgs...)
}

func (funcPublisher) Publish(string, ...*message.Message) error { panic("PublishContext is preferred") }
func (funcPublisher) Close() error                              { return nil }

func TestPublishContextGetsTheTimeout(t *testing.T) {
	t.Parallel()
	r := &Relay{
		metrics: newMetrics(nil), cfg: Config{PublishTimeout: 1},
		publisher: messagePublisher{funcPublisher(func(ctx context.Context, _ string, _ ...*message.Message) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})},
	}
	f := r.launch(t.Context(), records("a", "b"))
	require.NoError(t, f.wait(t.Context(), testTimeout))
	require.ErrorIs(t, f.results[0], errPublishTimeout)
	require.ErrorIs(t, f.results[1], errPublishTimeout)
}

func TestFailedIndexesOutOfRangeAreIgnored(t *testing.T) {
	t.Parallel()
	c := callsOf(records("a", "b"))[0]
	results := make([]error, 2)
	failed := errors.New("failed")
	c.publish(t.Context(), messagePublisher{funcPublisher(func(context.Context, string, ...*message.Message) error {
		return &partialError{Failed: map[int]error{1: failed, 7: failed, -1: failed}}
	})}, results)
	require.Equal(t, []error{nil, failed}, results)
}

// What a caller says of an error goes before what the error says of itself, as it does for failure.Examine.
func TestAMarkDecidesWhetherAFailureIsPermanent(t *testing.T) {
	t.Parallel()
	refused := &permanentError{Reason: "too large"}
	require.True(t, isPermanent(fmt.Errorf("send: %w", failure.AsPermanent(errors.New("no such topic")))))
	require.True(t, isPermanent(failure.AsPermanent(failure.AsTransient(refused))))
	require.False(t, isPermanent(failure.AsTransient(failure.AsPermanent(refused))))
	require.False(t, isPermanent(failure.AsTransient(refused)))
}
