package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
)

type placeKey struct{}

// placing wraps the producer, since watermill-kafka's Publisher returns no offsets.
type placing struct{ wkafka.SaramaTracer }

// WrapSyncProducer is the only method that a Publisher calls.
func (placing) WrapSyncProducer(_ *sarama.Config, p sarama.SyncProducer) sarama.SyncProducer {
	return placingProducer{p}
}

type placingProducer struct{ sarama.SyncProducer }

// SendMessage stores the record's place where the context asks for it. The broker's time replaces this one, unless the
// topic has the producer's.
func (p placingProducer) SendMessage(msg *sarama.ProducerMessage) (partition int32, offset int64, err error) {
	msg.Timestamp = time.Now().Truncate(time.Millisecond)
	partition, offset, err = p.SyncProducer.SendMessage(msg)
	if place, asked := msg.Metadata.(*event.Origin); asked && err == nil {
		*place = event.Origin{Topic: msg.Topic, Partition: partition, Offset: offset, Time: msg.Timestamp}
	}
	return partition, offset, err
}

// murmur2 serves all calls: a new partitioner is slow.
var murmur2 = sarama.NewMurmur2Partitioner("")

// PartitionOf returns a key's partition of so many, as Java clients have it.
func PartitionOf(key string, partitions int32) int32 {
	msg := &sarama.ProducerMessage{Key: sarama.StringEncoder(key)}
	partition, _ := murmur2.Partition(msg, partitions) // a string always encodes
	return partition
}

// PartitionOf is [PartitionOf], for a relay.
func (*Publisher) PartitionOf(key string, partitions int32) int32 {
	return PartitionOf(key, partitions)
}

// EachEnd calls each with a partition's first offset and the one after its last, or with an error: partition -1 for a
// whole topic. It does not retry.
func (p *Publisher) EachEnd(
	ctx context.Context, topics []string, each func(topic string, partition int32, start, end int64, err error),
) error {
	return Ask(ctx, p.cfg, "read ends", func(c Cluster) error {
		partitions := map[string][]int32{}
		for _, topic := range topics {
			found, err := c.Partitions(topic)
			if err != nil {
				each(topic, -1, 0, 0, classify(err))
				continue
			}
			partitions[topic] = found
		}
		if len(partitions) == 0 {
			return nil
		}
		startOf, endOf := c.listOffsets(partitions, sarama.OffsetOldest), c.listOffsets(partitions, sarama.OffsetNewest)
		for topic, numbers := range partitions {
			for _, partition := range numbers {
				start, noStart := startOf(topic, partition)
				end, noEnd := endOf(topic, partition)
				each(topic, partition, start, end, classify(cmp.Or(noStart, noEnd)))
			}
		}
		return nil
	})
}

// ReadLog returns the first records from one offset to before another, of every offset: also of open and aborted
// transactions, and of the marks that end one. Each message's context has its record's place.
func (p *Publisher) ReadLog(
	ctx context.Context, topic string, partition int32, from, to int64,
) (records []*message.Message, err error) {
	err = Ask(ctx, p.cfg, fmt.Sprintf("read %s/%d from %d", topic, partition, from), func(c Cluster) error {
		found, _, err := c.fetch(topic, partition, from, scanBytes, sarama.ReadUncommitted)
		for _, r := range found {
			if r.Offset < to {
				records = append(records, decode(ctx, "", r, nil))
			}
		}
		return err
	})
	return slices.Clip(records), err
}
