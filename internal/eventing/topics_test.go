package eventing_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/eventing"
	"example.com/twinbox/internal/kafkatest"
	"example.com/twinbox/internal/pgtest"
	"example.com/twinbox/internal/service"
)

// The relay records how many partitions a topic has, and does not publish to one with another number: its keys would
// lie in two partitions, and their order would be gone.
func TestTheRelayRefusesAnotherPartitionCount(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, sets...)
	cfg := environ(t, pgtest.DSN(pool), kafkatest.Brokers(t)[0])
	written, missing := kafkatest.Group(t), kafkatest.Group(t)
	ensureTopic(t, cfg, written)
	topics := cfg.Topics(written, missing)
	start := func(*service.Group, net.Listener) {}
	at := eventing.Listeners{Admin: "127.0.0.1:0"}

	b := open(t, cfg, topics...)
	_, ended := b.run(at, start)
	require.Eventually(t, func() bool {
		var partitions int32
		err := pool.QueryRow(t.Context(), `select partitions from public.outbox_topic where topic = $1`, written).
			Scan(&partitions)
		return err == nil && partitions == cfg.Kafka.Partitions
	}, patience, pollEvery, "a topic that does not exist yet is no error")
	b.stop()
	require.NoError(t, <-ended)

	_, err := pool.Exec(t.Context(), `update public.outbox_topic set partitions = 99 where topic = $1`, written)
	require.NoError(t, err)
	_, ended = open(t, cfg, topics...).run(at, start)
	err = <-ended
	require.ErrorContains(t, err, "partition")
	requireExitCode(t, service.ExitUsage, err)
}
