package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func customerDatabase(t *testing.T) *pgxpool.Pool { return pgtest.New(t, migrations.ForCustomer()...) }

// producer writes each record to the partition that it names, unless change sets a different partitioner.
func (h *stack) producer(t *testing.T, change func(cfg *sarama.Config)) sarama.SyncProducer {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.Return.Successes = true
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	if change != nil {
		change(cfg)
	}
	producer, err := sarama.NewSyncProducer(h.brokers, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, producer.Close()) })
	return producer
}

func (h *stack) send(t *testing.T, records ...*sarama.ProducerMessage) {
	t.Helper()
	require.NoError(t, h.producer(t, nil).SendMessages(records))
}

func (h *stack) lay(t *testing.T, r *rawEvent) (offset int64) {
	t.Helper()
	producer := h.producer(t, func(cfg *sarama.Config) { cfg.Producer.Compression = r.codec })
	_, offset, err := producer.SendMessage(r.message())
	require.NoError(t, err)
	return offset
}

func (h *stack) publish(t *testing.T, messages ...*message.Message) {
	t.Helper()
	publisher := kafkatest.NewPublisher(t, h.brokers)
	defer func() { require.NoError(t, publisher.Close()) }()
	require.NoError(t, publisher.Publish(contract.TopicUsers, messages...))
}

func (h *stack) headersOf(t *testing.T, topic string) map[string]string {
	t.Helper()
	return headersIn(kafkatest.ReadAll(t, h.brokers, topic, 1)[0])
}

func headersIn(record *sarama.ConsumerMessage) map[string]string {
	headers := map[string]string{}
	for _, header := range record.Headers {
		headers[string(header.Key)] = string(header.Value)
	}
	return headers
}

func (r *rawEvent) message() *sarama.ProducerMessage {
	record := &sarama.ProducerMessage{Topic: contract.TopicUsers, Headers: r.more}
	for name, value := range r.headers {
		record.Headers = append(record.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
	}
	if r.key != nil {
		record.Key = sarama.ByteEncoder(r.key)
	}
	if r.value != nil {
		record.Value = sarama.ByteEncoder(r.value)
	}
	return record
}

// awaitLetter waits: the dead letter may be stored in a later transaction than the batch's.
func (h *stack) awaitLetter(t *testing.T, offset int64, code, record string) {
	t.Helper()
	if code != "" {
		testkit.Until(t, func() bool { return h.letterAt(t, offset) != "" }, record)
	}
	require.Equal(t, code, h.letterAt(t, offset), record)
}

func (h *stack) hasProfile(t *testing.T, id string) bool {
	t.Helper()
	return count(t, h.customerDB, `select count(*) from profile where user_id = '`+id+`'`) == 1
}

func (h *stack) letterAt(t *testing.T, offset int64) (code string) {
	t.Helper()
	err := h.customerDB.QueryRow(context.WithoutCancel(t.Context()), `select string_agg(code, ' and ') from dead_letter
		where consumer = 'customer.profile' and topic = $1 and partition = 0 and record_offset = $2 having count(*) > 0`,
		contract.TopicUsers, offset).Scan(&code)
	if !errors.Is(err, pgx.ErrNoRows) {
		require.NoError(t, err)
	}
	return code
}
