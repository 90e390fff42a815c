package e2e

import (
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/test/testkit"
)

// poison goes to the partition of the person's key, before the person's own events and after them.
func poison(key string) map[string]*sarama.ProducerMessage {
	headers := func(pairs ...string) []sarama.RecordHeader {
		list := make([]sarama.RecordHeader, 0, len(pairs)/2)
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, sarama.RecordHeader{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])})
		}
		return list
	}
	event := func(id string, more ...string) []sarama.RecordHeader {
		return headers(append([]string{
			"ce_id", id, "ce_source", "/elsewhere", "ce_type", contract.UserRegistered.Type, "ce_specversion", "1.0",
			"ce_time", "2026-01-02T03:04:05Z", "ce_subject", key, "content-type", "application/json",
		}, more...)...)
	}
	return map[string]*sarama.ProducerMessage{
		"missing_id":       {Value: sarama.StringEncoder(`{}`)},
		"invalid_header":   {Value: sarama.StringEncoder(`{}`), Headers: event("p1", "ce_dataschema", "\xff\x00")},
		"empty_value":      {Headers: event("p2")}, // a tombstone
		"invalid_json":     {Value: sarama.StringEncoder("\x00\x01garbage"), Headers: event("p3")},
		"schema_violation": {Value: sarama.StringEncoder(`{"user_id":7}`), Headers: event("p4")},
		"invalid_time":     {Value: sarama.StringEncoder(`{}`), Headers: event("p5", "ce_time", "yesterday")},
		"structured_mode": {
			Value:   sarama.StringEncoder(`{"specversion":"1.0"}`),
			Headers: event("p6", "content-type", "application/cloudevents+json"),
		},
	}
}

func TestTheStoryGoesOnBehindPoison(t *testing.T) {
	parallel(t)
	h := newStack(t)
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.Return.Successes = true
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	producer, err := sarama.NewSyncProducer(h.brokers, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, producer.Close()) }()
	records := poison("someone")
	const partitions = 6
	for code, record := range records {
		for partition := range int32(partitions) {
			copied := *record
			copied.Topic, copied.Key, copied.Partition = contract.TopicUsers, sarama.StringEncoder("someone"), partition
			// With the same id in each partition, all but one would be duplicates.
			copied.Headers = withID(record.Headers, fmt.Sprint(code, partition))
			_, _, err := producer.SendMessage(&copied)
			require.NoError(t, err)
		}
	}
	h.start(t, customerService)
	h.start(t, notificationService)
	h.tell(t)
	for code := range records { // the other partitions have their own time
		for consumer, db := range map[string]*pgxpool.Pool{
			"customer.profile": h.customerDB, "notification.users": h.notificationDB,
		} {
			sql := fmt.Sprintf(`select count(*) from dead_letter where consumer = '%s' and code = '%s' and class = 'permanent'`,
				consumer, code)
			testkit.Until(t, func() bool { return count(t, db, sql) >= partitions }, code)
			require.Equal(t, partitions, count(t, db, sql), code)
		}
	}
	require.Equal(t, 1, count(t, h.customerDB, `select count(*) from profile`))
	require.Len(t, h.box.Messages(), 1)
}

func withID(headers []sarama.RecordHeader, id string) []sarama.RecordHeader {
	changed := append([]sarama.RecordHeader(nil), headers...)
	for i, header := range changed {
		if string(header.Key) == "ce_id" {
			changed[i].Value = []byte(id)
		}
	}
	return changed
}

func TestTheEventCarriesItsTrace(t *testing.T) {
	parallel(t)
	h := newStack(t)
	h.start(t, customerService)
	person := h.client()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	person.insist(t, 201, "POST", "/v1/signups", signUpBody, map[string]string{
		"Idempotency-Key": "k1", "traceparent": "00-" + trace + "-00f067aa0ba902b7-01",
	})
	require.Equal(t, 1, count(t, h.customerDB,
		`select count(*) from outbox where headers ->> 'traceparent' like '00-`+trace+`-%'`))
}
