package broker_test

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/broker"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func start(t *testing.T, cfg broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func send(t *testing.T, addr, topic, value string) error {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.Return.Successes = true
	cfg.Producer.Retry.Max = 0
	cfg.Metadata.Retry.Max = 0
	producer, err := sarama.NewSyncProducer([]string{addr}, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, producer.Close()) }()
	_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)})
	return err
}

func TestKeepsItsDataBetweenRuns(t *testing.T) {
	t.Parallel()
	addr, dir := testkit.ReservePort(t), t.TempDir()
	first := start(t, broker.Config{Dir: dir, Addr: addr})
	topic := kafkatest.Topic(t, []string{addr}, 3)
	require.NoError(t, send(t, addr, topic, "kept"))
	require.NoError(t, first.Close())

	second := start(t, broker.Config{Dir: dir, Addr: addr})
	require.Equal(t, addr, second.Addr())
	records := kafkatest.ReadAll(t, []string{addr}, topic, 1)
	require.Len(t, records, 1)
	require.Equal(t, "kept", string(records[0].Value))
}

func TestBusyPortIsAClearError(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, busy.Close()) }()

	_, err = broker.Start(t.Context(), broker.Config{Addr: busy.Addr().String()})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, busy.Addr().String())
}

func TestBadAddressAndBadFolderAreErrors(t *testing.T) {
	t.Parallel()
	_, err := broker.Start(t.Context(), broker.Config{Addr: "no-port"})
	require.ErrorContains(t, err, "start broker")

	_, err = broker.Start(t.Context(), broker.Config{Dir: "/dev/null/below-a-file"})
	require.ErrorContains(t, err, "load broker data")
}

func TestTopicsAreNotCreatedOnDemand(t *testing.T) {
	t.Parallel()
	b := start(t, broker.Config{})
	require.ErrorIs(t, send(t, b.Addr(), "no-such-topic", "x"), sarama.ErrUnknownTopicOrPartition)
}

// The first bytes would be a request of a gigabyte.
func TestBytesOfADifferentProtocolEndTheConnection(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", start(t, broker.Config{}).Addr())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(testkit.WaitLimit)))
	_, err = conn.Read(make([]byte, 1))
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Error(t, err)
}
