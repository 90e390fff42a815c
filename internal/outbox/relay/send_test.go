package relay

import (
	"context"
	"errors"
	"fmt"
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
		list[i] = record{Position: int64(i + 1), Event: event.Event{Topic: testTopic, ID: key, Key: key, Version: 1}}
	}
	return list
}

func sendTo(t *testing.T, timeout time.Duration, p message.Publisher, keys ...string) []error {
	t.Helper()
	m, err := newMetrics(nil)
	require.NoError(t, err)
	r := &Relay{metrics: m, cfg: Config{PublishTimeout: timeout, Publisher: p}}
	call := r.start(t.Context(), records(keys...))
	require.NoError(t, call.wait(testTimeout))
	return call.results
}

type funcLog struct {
	Log

	publish func(ctx context.Context) error
}

func (l funcLog) PublishAcked(ctx context.Context, _ string, _ ...*message.Message) (bool, error) {
	return false, l.publish(ctx)
}

func (funcLog) Publish(string, ...*message.Message) error { panic("PublishAcked is preferred") }
func (funcLog) Close() error                              { return nil }

func TestWhatFollowsAFailureIsHeldBack(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	results := sendTo(t, testTimeout, funcLog{publish: func(context.Context) error {
		return &partialError{Failed: map[int]error{2: failed, 4: failed, 7: failed, -1: failed}}
	}}, "a", "b", "a", "c", "b", "a")
	require.Equal(t, []error{nil, nil, failed, nil, failed, errBehind}, results)
}

func TestALogGetsTheTimeout(t *testing.T) {
	t.Parallel()
	results := sendTo(t, time.Millisecond, funcLog{publish: func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}}, "a", "b")
	require.ErrorIs(t, results[0], errPublishTimeout)
	require.ErrorIs(t, results[1], errPublishTimeout)
}

func TestAPublisherWithoutALogGetsOneEventPerCall(t *testing.T) {
	t.Parallel()
	poison := &permanentError{Reason: "poison"}
	l := newLedger()
	var sent []string
	l.Follow(func(_ int, _ string, msgs []*message.Message) error {
		require.Len(t, msgs, 1)
		sent = append(sent, msgs[0].Metadata[event.KeyMetadata])
		if msgs[0].Metadata[event.KeyMetadata] == "bad" {
			return poison
		}
		return nil
	})
	require.Equal(t, []error{nil, poison, nil, errBehind, nil}, sendTo(t, testTimeout, l, "a", "bad", "a", "bad", "b"))
	require.Equal(t, []string{"a", "bad", "a", "b"}, sent)
}

func TestAnEventWhoseTurnDidNotComeHasNotFailed(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for _, why := range sendTo(t, -1, l, "a", "b") {
		require.ErrorIs(t, why, errPublishTimeout)
		require.True(t, isUnfinished(why))
	}
	require.Zero(t, l.CallCount())
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
