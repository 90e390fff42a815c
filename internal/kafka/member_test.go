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

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// member runs a consumer. Its test answers the handler's calls, unless it has a handler of its own.
type member struct {
	*kafka.Consumer
	calls chan call
	lost  chan int32
	stop  context.CancelFunc
	ended chan error
	close func()
}

type call struct {
	ctx   context.Context
	batch []*message.Message
	reply chan<- result
}

type result struct {
	handled int
	err     error
}

func (c call) ids() []string       { return idsOf(c.batch) }
func (c call) ack()                { c.reply <- result{len(c.batch), nil} }
func (c call) nack(why error)      { c.reply <- result{0, why} }
func (c call) place() event.Origin { return placeOf(c.batch[0]) }

func placeOf(msg *message.Message) event.Origin {
	o, _ := event.OriginFrom(msg.Context())
	return o
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

func singles(brokers []string, group string) kafka.ConsumerConfig {
	cfg := batches(brokers, group)
	cfg.Batch = 1
	return cfg
}

func join(t testing.TB, cfg kafka.ConsumerConfig, topic string) *member {
	t.Helper()
	return consume(t, cfg, topic, nil, nil)
}

// consume has no handler by default, and no log.
func consume(
	t testing.TB, cfg kafka.ConsumerConfig, topic string, handle kafka.Handler, log *slog.Logger,
) *member {
	t.Helper()
	m := newMember(t, cfg, handle, log)
	m.run(t, t.Context(), topic)
	return m
}

func newMember(t testing.TB, cfg kafka.ConsumerConfig, handle kafka.Handler, log *slog.Logger) *member {
	t.Helper()
	closing := make(chan struct{})
	m := &member{calls: make(chan call), lost: make(chan int32, 1000), ended: make(chan error, 1)}
	m.close = sync.OnceFunc(func() {
		close(closing)
		m.stop()
		for range m.ended {
		}
	})
	cfg.Lost = func(_ string, p int32) { m.lost <- p }
	if handle == nil {
		handle = func(ctx context.Context, batch []*message.Message) (int, error) {
			reply := make(chan result, 1)
			select {
			case m.calls <- call{ctx, batch, reply}:
			case <-closing:
			case <-ctx.Done():
			}
			select {
			case r := <-reply:
				return r.handled, r.err
			case <-closing:
				return 0, errors.New("the test ends")
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
		}
	}
	var err error
	m.Consumer, err = kafka.NewConsumer(cfg, handle, log)
	require.NoError(t, err)
	return m
}

func (m *member) run(t testing.TB, ctx context.Context, topic string) {
	t.Helper()
	ctx, m.stop = context.WithCancel(ctx)
	go func() {
		defer close(m.ended)
		m.ended <- m.Run(ctx, topic)
	}()
	t.Cleanup(m.close)
}

func (m *member) awaitPartition(t testing.TB) {
	t.Helper()
	testkit.Until(t, func() bool { return len(m.Standings()) > 0 })
}

// read acknowledges n messages.
func (m *member) read(t testing.TB, n int) (ids []string) {
	t.Helper()
	for len(ids) < n {
		c := receive(t, m.calls)
		ids = append(ids, c.ids()...)
		c.ack()
	}
	return ids
}

func (m *member) requireSilent(t testing.TB) {
	t.Helper()
	select {
	case c := <-m.calls:
		require.FailNow(t, "handler called", "with %v", c.ids())
	case <-time.After(300 * time.Millisecond):
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
