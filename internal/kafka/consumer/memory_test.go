package consumer_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// heap is how many bytes are in use, once nothing new is any more: the broker of the test is in the same process, and
// answers on their way count.
func heap(t *testing.T) int {
	t.Helper()
	last := -1
	testkit.Until(t, func() bool {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools hold goes with the second one
		runtime.ReadMemStats(&stats)
		before := last
		last = int(stats.HeapAlloc)
		return before >= 0 && max(last-before, before-last) < 1<<20
	})
	return last
}

// A consumer whose handlers all hang holds of each partition what it was told, two records more, and what one answer
// had, for any records on the log: some of 1 MB, or such as take 250 times as much when they are decompressed. When
// the handlers go on, nothing is missing and the order is kept. It runs beside no other test: it measures the process.
func TestAPausedConsumerHoldsNoMoreThanItIsTold(t *testing.T) { //nolint:paralleltest // see above
	const (
		partitions = 12
		most       = 1_000_000
		fetch      = 8 << 10
		size       = 980_000 // of a record: a batch by itself, since a batch has at most 1,000,000 bytes
		lz4        = 255     // how many times as much it can make of what it is given, at most
		broker     = 8 << 20 // the broker's own, and all else that the process does
	)
	noise := make([]byte, size)
	_, _ = rand.Read(noise)
	for name, tc := range map[string]struct {
		payload []byte
		each    int // records per partition
		answer  int // what an answer has of a partition at most, in memory
	}{
		"large":        {noise, 12, size},
		"compressible": {bytes.Repeat([]byte{'x'}, size), 40, fetch * lz4},
	} {
		t.Run(name, func(t *testing.T) {
			brokers := kafkatest.Brokers(t)
			topic := kafkatest.Topic(t, brokers, partitions)
			publishLarge(t, brokers, topic, tc.payload, partitions*tc.each, partitions)
			before := heap(t)

			cfg := batches(brokers, kafkatest.Group(t))
			cfg.FetchBytes, cfg.MaxBytes = fetch, most
			entered, release := make(chan int32, partitions*tc.each), make(chan struct{})
			var mu sync.Mutex
			next, all := map[int32]int64{}, make(chan struct{}, 1)
			left := partitions * tc.each
			r := consume(t, cfg, topic, func(_ context.Context, batch []*message.Message) (int, error) {
				origin, _ := cloudevent.OriginFrom(batch[0].Context())
				entered <- origin.Partition
				<-release
				mu.Lock()
				defer mu.Unlock()
				for _, msg := range batch {
					origin, _ := cloudevent.OriginFrom(msg.Context())
					if origin.Offset != next[origin.Partition] || !bytes.Equal(msg.Payload, tc.payload) {
						return 0, fmt.Errorf("offset %d, %d bytes, after %d", origin.Offset, len(msg.Payload),
							next[origin.Partition])
					}
					next[origin.Partition]++
					if left--; left == 0 {
						all <- struct{}{}
					}
				}
				return len(batch), nil
			})
			busy := map[int32]bool{}
			for len(busy) < partitions {
				busy[receive(t, entered)] = true
			}
			bound := partitions*(most+2*size+tc.answer) + broker
			testkit.Until(t, func() bool { return heap(t)-before < bound }) // all handlers hang: what is held stays
			require.Greater(t, partitions*tc.each*size, 2*bound, "there is more on the log")
			close(release)
			receive(t, all)
			r.stop()
			require.NoError(t, receive(t, r.ended))
		})
	}
}

// publishLarge writes n records, as many to each partition.
func publishLarge(t *testing.T, brokers []string, topic string, payload []byte, n, partitions int) {
	t.Helper()
	cfg := kafka.Config{Brokers: brokers}.Producer()
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer(brokers, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, producer.Close()) }()
	for i := range n {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: topic, Partition: int32(i % partitions), Value: sarama.ByteEncoder(payload),
		})
		require.NoError(t, err)
	}
}
