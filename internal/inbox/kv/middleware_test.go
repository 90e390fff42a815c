package kv

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

func handled(in *Inbox, done *effects) message.HandlerFunc {
	return in.Middleware("test")(func(msg *message.Message) ([]*message.Message, error) {
		return nil, done.note(msg.UUID)(msg.Context())
	})
}

func TestTheMiddlewareKnowsAMessageByItsEvent(t *testing.T) {
	t.Parallel()
	done := &effects{}
	handler := handled(newInbox(t, NewMemory(0), quiet(prometheus.NewRegistry())), done)
	for range 2 {
		_, err := handler(message.NewMessage("uuid-1", nil))
		require.NoError(t, err)
	}
	require.Equal(t, 1, done.of("uuid-1"))
	for _, uuid := range []string{"uuid-2", "uuid-3"} {
		msg := message.NewMessage(uuid, nil)
		msg.Metadata.Set(event.HeaderID, "event-1")
		_, err := handler(msg)
		require.NoError(t, err)
	}
	require.Equal(t, 1, done.of("uuid-2"))
	require.Zero(t, done.of("uuid-3"), "the same event under another UUID")
	_, err := handler(message.NewMessage("", nil))
	require.Equal(t, failure.Permanent, failure.Classify(err), "what has no id cannot be remembered")
}

func TestTheMiddlewareReturnsTheHandlersErrorAndForgets(t *testing.T) {
	t.Parallel()
	broken, attempts := errors.New("broken"), 0
	in := newInbox(t, NewMemory(0), quiet(prometheus.NewRegistry()))
	handler := in.Middleware("test")(func(msg *message.Message) ([]*message.Message, error) {
		deadline, bounded := msg.Context().Deadline()
		require.True(t, bounded)
		require.NotZero(t, deadline)
		if attempts++; attempts < 3 {
			return nil, broken
		}
		return nil, nil
	})
	msg := message.NewMessage("uuid-1", nil)
	before := msg.Context()
	for range 2 {
		_, err := handler(msg)
		require.ErrorIs(t, err, broken)
		require.Equal(t, before, msg.Context(), "put back")
	}
	_, err := handler(msg)
	require.NoError(t, err)
	require.Equal(t, 3, attempts)
}

func TestAHandlerUnderTheMiddlewareMustNotPublish(t *testing.T) {
	t.Parallel()
	in := newInbox(t, NewMemory(0), quiet(prometheus.NewRegistry()))
	produced, err := in.Middleware("test")(func(*message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("x", nil)}, nil
	})(message.NewMessage("uuid-1", nil))
	require.ErrorIs(t, err, errPublishes)
	require.Equal(t, failure.Permanent, failure.Classify(err))
	require.Empty(t, produced)
}

func TestTheMiddlewareWaitsForTheStore(t *testing.T) {
	t.Parallel()
	registry, done, questions := prometheus.NewRegistry(), &effects{}, 0
	store := &troubled{Store: NewMemory(0), before: func(string, []byte) error {
		if questions++; questions <= 20 {
			return errAway
		}
		return nil
	}}
	_, err := handled(newInbox(t, store, quiet(registry)), done)(message.NewMessage("uuid-1", nil))
	require.NoError(t, err)
	require.Equal(t, 1, done.of("uuid-1"))
	require.Equal(t, 20, counter(t, registry, storeErrors, "test"))
	require.Equal(t, 1, counter(t, registry, messages, "test"), "one delivery, one outcome")
}

func TestTheMiddlewareStopsWithItsMessage(t *testing.T) {
	t.Parallel()
	registry, done := prometheus.NewRegistry(), &effects{}
	ctx, stop := context.WithCancel(t.Context())
	store := &troubled{Store: NewMemory(0), before: func(string, []byte) error {
		stop()
		return errAway
	}}
	msg := message.NewMessage("uuid-1", nil)
	msg.SetContext(ctx)
	_, err := handled(newInbox(t, store, quiet(registry)), done)(msg)
	require.Contains(t, []failure.Class{failure.Cancelled, failure.Transient}, failure.Classify(err))
	require.Zero(t, done.of("uuid-1"))
	require.Equal(t, 1, counter(t, registry, messages, "test", "failed"))
}
