package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	stock "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/dev/kafkatest"
	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/kafka"
)

var _ stock.MarshalerUnmarshaler = kafka.Marshaler{}

// headers are what the record carries, as "name=value", in order.
func headers(record *sarama.ConsumerMessage) []string {
	list := make([]string, len(record.Headers))
	for i, header := range record.Headers {
		list[i] = fmt.Sprintf("%s=%s", header.Key, header.Value)
	}
	return list
}

func fullEvent() cloudevent.Event {
	return cloudevent.Event{
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

// TestTheWireIsCloudEventsBinaryMode looks at the record as a foreign consumer sees it.
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
}

func TestTheStockMarshalerInterfaceWritesTheSame(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	msg := fullEvent().Message()
	require.NoError(t, publisher.Publish(topic, msg))
	direct := kafkatest.ReadAll(t, brokers, topic, 1)[0]

	record, err := kafka.Marshaler{}.Marshal(topic, msg)
	require.NoError(t, err)
	require.Equal(t, topic, record.Topic)
	key, err := record.Key.Encode()
	require.NoError(t, err)
	require.Equal(t, direct.Key, key)
	value, err := record.Value.Encode()
	require.NoError(t, err)
	require.Equal(t, direct.Value, value)
	require.Len(t, record.Headers, len(direct.Headers))
	for i, header := range record.Headers {
		require.Equal(t, *direct.Headers[i], header)
	}
}

// A subscriber of watermill-kafka as it comes, with its own marshaler and nothing of ours, has the event's id as its
// message's UUID.
func TestAStockSubscriberReadsTheEventsID(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	event := fullEvent()
	require.NoError(t, publisher.PublishEvents(t.Context(), topic, &event))
	subscriber, err := stock.NewSubscriber(stock.SubscriberConfig{
		Brokers: brokers, Unmarshaler: stock.DefaultMarshaler{}, OverwriteSaramaConfig: fast(brokers, "").Consumer(),
	}, watermill.NopLogger{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, subscriber.Close()) })
	messages, err := subscriber.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	select {
	case msg := <-messages:
		require.Equal(t, event.ID, msg.UUID)
		require.Equal(t, event.ID, msg.Metadata["ce_id"])
		require.Equal(t, event.Data, []byte(msg.Payload))
		require.True(t, msg.Ack())
	case <-time.After(kafkatest.Patience):
		require.FailNow(t, "nothing came")
	}
}

func TestAMessageSurvivesTheRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		msg := message.NewMessage(rapid.String().Draw(t, "id"), rapid.SliceOf(rapid.Byte()).Draw(t, "payload"))
		msg.Metadata = rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		delete(msg.Metadata, cloudevent.HeaderID) // the UUID's places
		delete(msg.Metadata, cloudevent.HeaderWatermillID)
		if key := rapid.String().Draw(t, "key"); key != "" {
			msg.Metadata[cloudevent.KeyMetadata] = key
		}
		record, err := kafka.Marshaler{}.Marshal("topic", msg)
		require.NoError(t, err)
		read := &sarama.ConsumerMessage{Topic: "topic"}
		for i := range record.Headers {
			read.Headers = append(read.Headers, &record.Headers[i])
		}
		if record.Key != nil {
			read.Key, _ = record.Key.Encode()
		}
		read.Value, _ = record.Value.Encode()

		back, err := kafka.Marshaler{}.Unmarshal(read)
		require.NoError(t, err)
		require.True(t, msg.Equals(back), "%v %v", msg, back)
	})
}

func header(name, value string) *sarama.RecordHeader {
	return &sarama.RecordHeader{Key: []byte(name), Value: []byte(value)}
}

func TestWhateverLiesOnTheLogBecomesAMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		record   sarama.ConsumerMessage
		id       string
		metadata message.Metadata
	}{
		"nothing at all": {metadata: message.Metadata{}},
		"empty key and value": {
			record: sarama.ConsumerMessage{Key: []byte{}, Value: []byte{}}, metadata: message.Metadata{},
		},
		"a header twice": {
			record: sarama.ConsumerMessage{Headers: []*sarama.RecordHeader{
				header("ce_type", "first"), header("ce_id", "1"), header("ce_type", "last"), header("ce_id", "2"),
			}},
			id: "2", metadata: message.Metadata{"ce_type": "last"},
		},
		"bytes that are no text": {
			record: sarama.ConsumerMessage{Key: []byte{0xff, 0}, Headers: []*sarama.RecordHeader{
				header("\xfe", "\xff\x00"), {Key: nil, Value: nil},
			}},
			metadata: message.Metadata{"record_key": "\xff\x00", "\xfe": "\xff\x00", "": ""},
		},
		"a header that poses as the key": {
			record:   sarama.ConsumerMessage{Headers: []*sarama.RecordHeader{header("record_key", "forged")}},
			metadata: message.Metadata{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.record.Topic, test.record.Partition, test.record.Offset = "t", 3, 14
			msg, err := kafka.Marshaler{}.Unmarshal(&test.record)
			require.NoError(t, err)
			require.Equal(t, test.id, msg.UUID)
			require.Equal(t, test.metadata, msg.Metadata)
			origin, ok := cloudevent.OriginFrom(msg.Context())
			require.True(t, ok)
			require.Len(t, origin.Headers, len(test.record.Headers), "all of them")
			require.EqualValues(t, 14, origin.Offset)
		})
	}
}
