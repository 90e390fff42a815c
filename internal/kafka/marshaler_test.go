package kafka_test

import (
	"testing"

	"github.com/IBM/sarama"
	stock "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

var _ stock.MarshalerUnmarshaler = kafka.Marshaler{}

func TestAMessageSurvivesTheRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		msg := message.NewMessage(rapid.String().Draw(t, "id"), rapid.SliceOf(rapid.Byte()).Draw(t, "payload"))
		msg.Metadata = rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		delete(msg.Metadata, event.HeaderID)
		delete(msg.Metadata, event.HeaderWatermillID)
		if key := rapid.String().Draw(t, "key"); key != "" {
			msg.Metadata[event.KeyMetadata] = key
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

func TestEveryRecordBecomesAMessage(t *testing.T) {
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
			origin, ok := event.OriginFrom(msg.Context())
			require.True(t, ok)
			require.Len(t, origin.Headers, len(test.record.Headers), "all of them")
			require.EqualValues(t, 14, origin.Offset)
		})
	}
}
