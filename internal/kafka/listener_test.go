package kafka_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// listener gets one message of a partition at a time; Ack and Nack settle it.
type listener struct {
	*running
	messages chan *message.Message
	closing  chan struct{}
	close    func() error
}

func fast(brokers []string, group string) kafka.ConsumerConfig {
	cfg := batches(brokers, group)
	cfg.Batch = 1
	return cfg
}

func batches(brokers []string, group string) kafka.ConsumerConfig {
	return kafka.ConsumerConfig{
		Config:            kafka.Config{Brokers: brokers},
		Group:             group,
		SessionTimeout:    kafkatest.Patience,
		HeartbeatInterval: 50 * time.Millisecond,
		CommitInterval:    50 * time.Millisecond,
		DrainTimeout:      2 * time.Second,
		Backoff:           10 * time.Millisecond,
	}
}

func listen(t testing.TB, cfg kafka.ConsumerConfig, topic string) *listener {
	t.Helper()
	return listenWith(t, cfg, topic, quiet)
}

func listenWith(t testing.TB, cfg kafka.ConsumerConfig, topic string, log *slog.Logger) *listener {
	t.Helper()
	l := &listener{messages: make(chan *message.Message), closing: make(chan struct{})}
	l.running = consumeWith(t, cfg, topic, l.handOver, log)
	l.close = sync.OnceValue(func() error {
		close(l.closing)
		l.stop()
		<-l.done
		close(l.messages)
		return nil
	})
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func (l *listener) Close() error { return l.close() }

var (
	errNacked  = errors.New("nacked")
	errClosing = errors.New("the listener closes")
)

func (l *listener) handOver(ctx context.Context, batch []*message.Message) (int, error) {
	msg := batch[0].CopyWithContext()
	select {
	case l.messages <- msg:
	case <-l.closing:
		return 0, errClosing
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	select {
	case <-msg.Acked():
		return 1, nil
	case <-msg.Nacked():
		return 0, errNacked
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value, ok := <-from:
		require.True(t, ok, "channel closed")
		return value
	case <-time.After(kafkatest.Patience):
		require.FailNow(t, "nothing received")
		panic("unreachable")
	}
}

func read(t testing.TB, l *listener, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		msg := receive(t, l.messages)
		ids[i] = msg.UUID
		require.True(t, msg.Ack())
	}
	return ids
}

func afterDone(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	context.AfterFunc(ctx, func() { done <- context.Cause(ctx) })
	return done
}
