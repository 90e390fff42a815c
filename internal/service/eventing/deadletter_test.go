package eventing_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestDeadLettersAreCopied(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "KAFKA_TOPIC_PARTITIONS=1", "INBOX_MAX_ATTEMPTS=1")
	brokers, cfg, topic := p.brokers, p.cfg, p.topic
	copies := "dlq.twinbox." + cfg.Environment + ".test.copies." + topic
	foreign := []sarama.RecordHeader{
		{Key: []byte("x"), Value: []byte{0xff, 0}},
		{Key: []byte("tenant"), Value: []byte("shop")},
		{Key: []byte("ce_id"), Value: nil},
		{Key: []byte("\xff\x00Name"), Value: []byte{}},
		{Key: []byte{}, Value: []byte("nameless")},
	}
	sick := event.Event{
		ID: "sick", Source: "/test", Type: "test.pinged.v1", Key: "k", Time: time.Now(), Data: []byte(`{"n":7}`),
	}.Message()
	record, err := kafka.Marshaler{}.Marshal(topic, sick)
	require.NoError(t, err)
	sendRaw(t, brokers, &sarama.ProducerMessage{
		Topic: topic, Key: sarama.ByteEncoder{0xfe, 1}, Value: sarama.StringEncoder("not an event"), Headers: foreign,
	}, record, &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder{}})

	b := open(t, cfg)
	b.consume(t, eventing.Consumer{
		Name: "test.copies", Topic: topic, Handlers: pings(func(context.Context, pgx.Tx, event.Event, pinged) error {
			return inbox.Permanent(errors.New("seven is bad"))
		}),
	})
	b.serve(t)
	copied := kafkatest.ReadAll(t, brokers, copies, 3)
	require.Len(t, copied, 3)
	slices.SortFunc(copied, func(a, b *sarama.ConsumerMessage) int {
		return strings.Compare(headerOf(a, "__dlq.errors.offset"), headerOf(b, "__dlq.errors.offset"))
	})
	for i, want := range [][2]string{
		{"not an event", "missing_id"}, {`{"n":7}`, "handler_failed"}, {"null", "missing_id"},
	} {
		require.Equal(t, want[0], string(copied[i].Value))
		message, err := kafka.Marshaler{}.Unmarshal(copied[i])
		require.NoError(t, err)
		e, err := event.FromMessage(message)
		require.NoError(t, err)
		require.Equal(t, deadletter.CopyType, e.Type)
		require.Equal(t, []string{topic, "0", strconv.Itoa(i), want[1], "permanent", "test.copies"}, []string{
			e.Extensions["__dlq.errors.topic"], e.Extensions["__dlq.errors.partition"],
			e.Extensions["__dlq.errors.offset"], e.Extensions["dlq_error_code"], e.Extensions["dlq_error_class"],
			e.Extensions["dlq_handler"],
		})
		require.Equal(t, "twinbox."+cfg.Environment+".test.copies", e.Extensions["__dlq.errors.group"])
	}
	require.Equal(t, "shop", headerOf(copied[0], "tenant"))
	require.Equal(t, "k", string(copied[1].Key))
	require.Equal(t, []string{"sick", "sick"}, []string{
		headerOf(copied[1], "dlq_ce_id"), headerOf(copied[1], event.HeaderCausationID),
	})
	letters, err := deadLetters(t.Context(), p.pool)
	require.NoError(t, err)
	for i, h := range foreign {
		stored := letters[0].Headers[i]
		require.Equal(t, failure.Text(string(h.Key)), stored.Name)
		require.Equal(t, string(h.Value), string(stored.Value))
	}
	require.Empty(t, letters[2].Key)
	require.Empty(t, letters[2].Payload)
}

func TestTheFirstDeadLetterFindsItsTopic(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "KAFKA_TOPIC_PARTITIONS=2", "KAFKA_TOPIC_RETENTION=12h", "KAFKA_PUBLISH_TIMEOUT=2s")
	copies := "dlq.twinbox." + p.cfg.Environment + ".test.handwritten." + p.topic
	b := open(t, p.cfg)
	b.consume(t, eventing.Consumer{Name: "test.handwritten", Topic: p.topic, Handlers: inbox.NewMux()})
	b.serve(t)
	b.awaitWell(t)
	made, err := kafka.DescribeTopics(t.Context(), p.cfg.Client("test"), copies)
	require.NoError(t, err)
	require.Equal(t, 12*time.Hour, made[copies].Retention, "as the topics command makes it")
	require.False(t, made[copies].CreateTime)

	sendRaw(t, p.brokers, &sarama.ProducerMessage{Topic: p.topic, Value: sarama.StringEncoder("poison")})
	require.Len(t, kafkatest.ReadAll(t, p.brokers, copies, 1), 1)
	c := b.awaitCause(t, "dead_letters", `.* has 1 dead letter.*`)
	require.Equal(t, "twinbox dlq list", c.Command)
	code, failing := b.report(t)
	require.Equal(t, http.StatusOK, code, failing)
}

func headerOf(record *sarama.ConsumerMessage, name string) (value string) {
	for _, h := range record.Headers {
		if string(h.Key) == name {
			value = string(h.Value)
		}
	}
	return value
}

func TestALetterTooLargeForTheOutboxHasNoCopy(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "KAFKA_TOPIC_PARTITIONS=1", "OUTBOX_MAX_EVENT_BYTES=1024")
	sendRaw(t, p.brokers, &sarama.ProducerMessage{Topic: p.topic, Value: sarama.ByteEncoder(make([]byte, 2000))})
	b := open(t, p.cfg)
	b.consume(t, eventing.Consumer{Name: "test.large", Topic: p.topic, Handlers: inbox.NewMux()})
	b.serve(t)
	testkit.Until(t, func() bool {
		letters, err := deadLetters(t.Context(), p.pool)
		return err == nil && len(letters) == 1 && len(letters[0].Payload) == 2000
	})
	value := b.scrape(t)
	tooLarge, _ := value(`dead_letter_copies_total{consumer="test.large",result="too_large"}`)
	all, _ := value("dead_letter_copies_total")
	require.Equal(t, []float64{1, 1}, []float64{tooLarge, all})
}
