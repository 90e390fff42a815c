package eventing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

// A service may change its edge and change it back: each goes on where the other has stopped.
func TestTheEdgesTakeTurns(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "KAFKA_TOPIC_PARTITIONS=1")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	for i, edge := range []string{"batch", "watermill", "batch", "watermill"} {
		cfg.Kafka.Edge = edge
		sendRaw(t, brokers, pingRecord(t, topic, int64(2*i+1)), pingRecord(t, topic, int64(2*i+2)))
		require.Equal(t, map[inbox.Outcome]int{inbox.Applied: 2}, outcomesOf(t, cfg, topic, 2), "%s, nothing again", edge)
	}
}

// Nothing is kept of how far a partition was read, so nothing tells that a restore took effects away.
func TestOnWatermillsEdgeNoPositionsAreKept(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	for edge, want := range map[string]int{kafkatest.OnBatchEdge: 1, onWatermill: 0} {
		cfg := environ(t, pgtest.DSN(pool), brokers[0], edge, "KAFKA_TOPIC_PARTITIONS=1")
		topic := kafkatest.Group(t)
		ensureTopic(t, cfg, topic)
		sendRaw(t, brokers, pingRecord(t, topic, 1))
		outcomesOf(t, cfg, topic, 1)
		require.Equal(t, want, rows(t, pool, `select count(*) from inbox_position where topic = '`+topic+`'`))
	}
}
