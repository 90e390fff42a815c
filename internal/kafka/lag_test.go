package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func behind(t *testing.T, brokers []string, group, topic string) kafka.Lag {
	t.Helper()
	lags, err := kafka.ReadLag(t.Context(), kafka.Config{Brokers: brokers}, group, topic, nil)
	require.NoError(t, err)
	require.Len(t, lags, 1)
	return lags[0]
}

func awaitBehind(t *testing.T, brokers []string, group, topic string, records int64) {
	t.Helper()
	testkit.Until(t, func() bool { return behind(t, brokers, group, topic).Records == records }, "want %d", records)
}

func TestLagIsWhatWaits(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 5)
	group := kafkatest.Group(t)
	lag := behind(t, brokers, group, topic)
	require.EqualValues(t, 5, lag.Records, "nothing was ever consumed")
	require.Positive(t, lag.Age)

	m := join(t, singles(brokers, group), topic)
	require.Equal(t, ids[:1], m.read(t, 1))
	awaitBehind(t, brokers, group, topic, 4)
	standing := behind(t, brokers, group, topic)
	testkit.Until(t, func() bool {
		now := behind(t, brokers, group, topic)
		require.EqualValues(t, 4, now.Records)
		return now.Age > standing.Age
	}, "the age of what waits grows while the consumer stands")
	m.close()

	deleteRecords(t, brokers, topic, 3)
	require.EqualValues(t, 2, behind(t, brokers, group, topic).Records, "what was deleted waits no more")
	deleteRecords(t, brokers, topic, 5)
	require.Equal(t, kafka.Lag{Topic: topic}, behind(t, brokers, group, topic))
}

// A handled record waits no more, though its offset is committed later.
func TestLagIsWhatTheDatabaseHasNotHandled(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 5)
	handler := &database{points: map[int32]event.Point{}}
	require.EqualValues(t, 5, behindHandler(t, brokers, topic, handler), "it has no point")
	handler.set(0, event.Point{Next: 3})
	require.EqualValues(t, 2, behindHandler(t, brokers, topic, handler))
	handler.fails = 1
	require.EqualValues(t, 5, behindHandler(t, brokers, topic, handler), "no offset is committed")
	handler.set(0, event.Point{Next: 6})
	require.EqualValues(t, 5, behindHandler(t, brokers, topic, handler), "the point is of another log")
}

func behindHandler(t *testing.T, brokers []string, topic string, handler kafka.Points) int64 {
	t.Helper()
	lags, err := kafka.ReadLag(t.Context(), kafka.Config{Brokers: brokers}, "g", topic, handler)
	require.NoError(t, err)
	return lags[0].Records
}

// A transaction ends with a mark, which no group commits.
func TestTransactionMarksAreNoLag(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, group := kafkatest.Topic(t, brokers, 1), kafkatest.Group(t)
	producer, send := transactional(t, brokers, topic)
	send(producer.CommitTxn)
	awaitBehind(t, brokers, group, topic, 2) // the record, and the mark that the broker writes after its answer
	join(t, singles(brokers, group), topic).read(t, 1)
	awaitBehind(t, brokers, group, topic, 0)
	send(producer.AbortTxn)
	send(func() error { return nil }) // it stays open
	require.Equal(t, kafka.Lag{Topic: topic}, behind(t, brokers, group, topic))
	require.NoError(t, producer.CommitTxn())
	awaitBehind(t, brokers, group, topic, 2)
}
