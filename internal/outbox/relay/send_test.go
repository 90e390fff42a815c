package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

func records(keys ...string) []record {
	list := make([]record, len(keys))
	for i, key := range keys {
		list[i] = record{Position: int64(i + 1), Event: event.Event{Topic: testTopic, ID: key, Key: key}}
	}
	return list
}

func sendTo(t *testing.T, timeout time.Duration, p funcPublisher, singly bool, keys ...string) []error {
	t.Helper()
	m, err := newMetrics(nil)
	require.NoError(t, err)
	r := &Relay{metrics: m, cfg: Config{PublishTimeout: timeout, Publisher: p}}
	call := r.start(t.Context(), records(keys...), singly)
	require.NoError(t, call.wait(testTimeout))
	return call.results
}

func TestWhatFollowsAFailureIsHeldBack(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	results := sendTo(t, testTimeout, func(context.Context, string, ...*message.Message) error {
		return &partialError{Failed: map[int]error{2: failed, 4: failed, 7: failed, -1: failed}}
	}, false, "a", "b", "a", "c", "b", "a")
	require.Equal(t, []error{nil, nil, failed, nil, failed, errBehind}, results)
}

type funcPublisher func(ctx context.Context, topic string, msgs ...*message.Message) error

func (p funcPublisher) PublishContext(ctx context.Context, topic string, msgs ...*message.Message) error {
	return p(ctx, topic, msgs...)
}

func (funcPublisher) Publish(string, ...*message.Message) error { panic("PublishContext is preferred") }
func (funcPublisher) Close() error                              { return nil }

func TestPublishContextGetsTheTimeout(t *testing.T) {
	t.Parallel()
	for _, singly := range []bool{false, true} {
		results := sendTo(t, time.Millisecond, func(ctx context.Context, _ string, _ ...*message.Message) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, singly, "a", "b")
		require.ErrorIs(t, results[0], errPublishTimeout)
		require.ErrorIs(t, results[1], errPublishTimeout)
		require.True(t, isUnfinished(results[1]))
	}
}

func TestAWholeCallThatFailsIsSentOneByOne(t *testing.T) {
	t.Parallel()
	poison := &permanentError{Reason: "poison"}
	var sent []string
	publish := func(_ context.Context, _ string, msgs ...*message.Message) error {
		for _, m := range msgs {
			sent = append(sent, m.Metadata[event.KeyMetadata])
		}
		if slices.Contains(sent[len(sent)-len(msgs):], "bad") {
			return poison
		}
		return nil
	}
	keys := []string{"a", "bad", "a", "bad", "b"}
	for _, why := range sendTo(t, testTimeout, publish, false, keys...)[:2] {
		require.ErrorIs(t, why, poison)
		require.False(t, hasFailed(why), "no key is parked for it")
		require.False(t, isPermanent(why))
	}
	sent = nil
	require.Equal(t, []error{nil, poison, nil, errBehind, nil}, sendTo(t, testTimeout, publish, true, keys...))
	require.Equal(t, []string{"a", "bad", "a", "b"}, sent)
}

// A caller's mark has priority over the error's own, as in failure.Examine.
func TestAMarkDecidesWhetherAFailureIsPermanent(t *testing.T) {
	t.Parallel()
	refused := &permanentError{Reason: "too large"}
	require.True(t, isPermanent(fmt.Errorf("send: %w", failure.AsPermanent(errors.New("no such topic")))))
	require.True(t, isPermanent(failure.AsPermanent(failure.AsTransient(refused))))
	require.False(t, isPermanent(failure.AsTransient(failure.AsPermanent(refused))))
	require.False(t, isPermanent(failure.AsTransient(refused)))
}
