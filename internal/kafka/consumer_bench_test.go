package kafka_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func BenchmarkConsume(b *testing.B) {
	brokers := kafkatest.Brokers(b)
	for _, batch := range []int{1, 50, 200} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			topic := backlog(b, brokers)
			cfg := batches(brokers, kafkatest.Group(b))
			cfg.Batch = batch
			var seen, calls atomic.Int64
			joined, all := make(chan struct{}, 1), make(chan struct{}, 1)
			release := make(chan struct{})
			r := consume(b, cfg, topic, func(_ context.Context, batch []*message.Message) (int, error) {
				select {
				case joined <- struct{}{}:
				default:
				}
				<-release
				calls.Add(1)
				if n := seen.Add(int64(len(batch))); n > int64(b.N) && n-int64(len(batch)) <= int64(b.N) {
					all <- struct{}{}
				}
				return len(batch), nil
			})
			receive(b, joined)
			b.ReportAllocs()
			b.ResetTimer()
			close(release)
			<-all
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(b.N)/float64(calls.Load()), "records/call")
			r.stop()
			require.NoError(b, receive(b, r.ended))
		})
	}
}

// backlog publishes one record more than the benchmark reads: the first one shows that the group has joined.
func backlog(b *testing.B, brokers []string) string {
	topic := kafkatest.Topic(b, brokers, 12)
	publisher := newPublisher(b, kafka.Config{Brokers: brokers})
	batch := signupEvents(5000)
	for left := b.N + 1; left > 0; left -= len(batch) {
		require.NoError(b, publisher.Publish(topic, batch[:min(left, len(batch))]...))
	}
	return topic
}
