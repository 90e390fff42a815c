package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	stock "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

func headers(record *sarama.ConsumerMessage) []string {
	list := make([]string, len(record.Headers))
	for i, header := range record.Headers {
		list[i] = fmt.Sprintf("%s=%s", header.Key, header.Value)
	}
	return list
}

func fullEvent() event.Event {
	return event.Event{
		ID:         "0197f3a0-0000-7000-8000-000000000001",
		Source:     "/twinbox/customer",
		Type:       "com.example.customer.user-registered.v1",
		Key:        "user-1",
		Time:       time.Date(2026, 11, 21, 3, 4, 5, 6000, time.UTC),
		Version:    7,
		DataSchema: "https://example.com/schema.json",
		Data:       []byte(`{"a": 1}`),
		Extensions: map[string]string{"zeta": "z", "alpha": "a", "traceparent": "00-1-2-01"},
	}
}

func TestTheWireIsCloudEventsBinaryMode(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	before := time.Now().Truncate(time.Millisecond)
	require.NoError(t, publisher.Publish(topic, fullEvent().Message()))

	record := kafkatest.ReadAll(t, brokers, topic, 1)[0]
	require.Equal(t, []string{
		"ce_id=0197f3a0-0000-7000-8000-000000000001",
		"_watermill_message_uuid=0197f3a0-0000-7000-8000-000000000001",
		"ce_source=/twinbox/customer",
		"ce_type=com.example.customer.user-registered.v1",
		"ce_specversion=1.0",
		"ce_time=2026-11-21T03:04:05.000006Z",
		"ce_subject=user-1",
		"ce_aggregateversion=7",
		"ce_dataschema=https://example.com/schema.json",
		"content-type=application/json",
		"traceparent=00-1-2-01",
		"alpha=a",
		"zeta=z",
	}, headers(record))
	require.Equal(t, "user-1", string(record.Key))
	require.Equal(t, `{"a": 1}`, string(record.Value))
	require.WithinRange(t, record.Timestamp, before, time.Now())

	msg, err := stock.DefaultMarshaler{}.Unmarshal(record) // as a stock Subscriber does by default
	require.NoError(t, err)
	require.Equal(t, fullEvent().ID, msg.UUID)
	require.Equal(t, fullEvent().ID, msg.Metadata["ce_id"])
}
