package eventing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

// The producer's clock is wrong.
func TestTheTimeOfARecordDecidesNothing(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	topic, byProducer, endless := kafkatest.Group(t), "CreateTime", "9223372036854775807"
	require.NoError(t, kafkatest.Admin(t, brokers).CreateTopic(topic, &sarama.TopicDetail{
		NumPartitions: 1, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{
			"message.timestamp.type": &byProducer, "message.timestamp.before.max.ms": &endless,
			"message.timestamp.after.max.ms": &endless,
		},
	}, false))
	timed, foreign := uuid.Must(uuid.NewV7()), "order-7/shipped"
	for n, at := range []time.Time{time.Now(), time.UnixMilli(0), time.Now().AddDate(200, 0, 0)} {
		for _, id := range []string{timed.String(), foreign} {
			record, err := kafka.Marshaler{}.Marshal(topic, event.Event{
				ID: id, Source: "/test", Type: "test.pinged.v1", Key: id, Version: 1,
				Time: time.Now().Add(time.Duration(-n) * time.Hour), Data: []byte(`{"n":7}`),
			}.Message())
			require.NoError(t, err)
			record.Timestamp = at
			sendRaw(t, brokers, record)
		}
		garbage := sarama.StringEncoder(fmt.Sprint("no event ", n))
		sendRaw(t, brokers, &sarama.ProducerMessage{Topic: topic, Timestamp: at, Value: garbage})
	}
	require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 2, inbox.Duplicate: 4, inbox.Dead: 3},
		outcomesOf(t, environ(t, pgtest.DSN(pool), brokers[0]), topic, 9))

	second, nanosecond := timed.Time().UnixTime()
	for id, place := range map[string]time.Time{
		timed.String(): time.Unix(second, nanosecond).Truncate(time.Millisecond), foreign: time.UnixMilli(0),
	} {
		var found time.Time
		require.NoError(t, pool.QueryRow(t.Context(), `select event_time from inbox where event_id = $1`, id).Scan(&found))
		require.Equal(t, place.UTC(), found.UTC(), id)
	}
}
