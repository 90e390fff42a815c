package eventing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

func timedTopic(t *testing.T, brokers []string, setting string) string {
	t.Helper()
	name, endless := kafkatest.Group(t), "9223372036854775807"
	cluster := kafkatest.Admin(t, brokers)
	require.NoError(t, cluster.CreateTopic(name, &sarama.TopicDetail{
		NumPartitions: 1, ReplicationFactor: 1,
		ConfigEntries: map[string]*string{
			"message.timestamp.type": &setting, "message.timestamp.before.max.ms": &endless,
			"message.timestamp.after.max.ms": &endless,
		},
	}, false))
	return name
}

func TestTheTimeOfARecordDecidesNothing(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	times := []time.Time{time.Now(), time.UnixMilli(0), time.Now().AddDate(200, 0, 0)}
	for _, setting := range []string{"CreateTime", "LogAppendTime"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t, sets...)
			topic := timedTopic(t, brokers, setting)
			timed, foreign := uuid.Must(uuid.NewV7()), "order-7/shipped"
			for n, at := range times {
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
				rows, err := pool.Query(t.Context(), `select event_time from inbox where event_id = $1`, id)
				require.NoError(t, err)
				found, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[time.Time])
				require.NoError(t, err)
				require.Equal(t, place.UTC(), found.UTC(), id)
			}
			if setting == "LogAppendTime" && kafkatest.IsReal() { // the in-process broker leaves the producer's
				var letters int
				require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from dead_letter
					where record_time between now() - interval '1 hour' and now() + interval '1 hour'`).Scan(&letters))
				require.Equal(t, len(times), letters)
			}
		})
	}
}
