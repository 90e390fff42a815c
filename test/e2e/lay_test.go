package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
	"example.com/twinbox/test/testkit"
)

func stackBrokers(t *testing.T) []string { return kafkatest.OwnBrokers(t) }

func customerDatabase(t *testing.T) *pgxpool.Pool { return pgtest.New(t, migrations.ForCustomer()...) }

func (h *stack) lay(t *testing.T, r *rawEvent) int64 {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.Return.Successes = true
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.Compression = r.codec
	producer, err := sarama.NewSyncProducer(h.brokers, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, producer.Close()) }()
	_, offset, err := producer.SendMessage(r.message())
	require.NoError(t, err)
	return offset
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
