package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/kafka/consumer"
	"example.com/twinbox/test/kafkatest"
)

// rotten flips a byte of every answer that holds its word: what a disk does, after the broker has checked the batch.
type rotten struct{ word string }

func (r rotten) listen(network, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	return rottenListener{listener, r}, err
}

type rottenListener struct {
	net.Listener
	rotten
}

func (l rottenListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return rottenConn{conn, l.rotten}, err
}

type rottenConn struct {
	net.Conn
	rotten
}

func (c rottenConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.word)) {
		p = bytes.ReplaceAll(p, []byte(c.word), []byte(strings.ToUpper(c.word)))
	}
	return c.Conn.Write(p)
}

// toPartition publishes one batch of records, uncompressed, straight to a partition.
func toPartition(t testing.TB, brokers []string, topic string, partition int32, values ...string) {
	t.Helper()
	producer := rawProducer(t, brokers, func(cfg *sarama.Config) {
		cfg.Producer.Partitioner = sarama.NewManualPartitioner
		cfg.Producer.Compression = sarama.CompressionNone
		cfg.Producer.Flush.Messages = len(values)
	})
	records := make([]*sarama.ProducerMessage, len(values))
	for i, value := range values {
		records[i] = &sarama.ProducerMessage{Topic: topic, Partition: partition, Value: sarama.StringEncoder(value)}
	}
	require.NoError(t, producer.SendMessages(records))
}

// got is a message as these tests look at it.
type got struct {
	partition    int32
	offset, last int64
	value        string
	unreadable   error
}

func collect(into chan<- got) consumer.Handler {
	return func(_ context.Context, batch []*message.Message) (int, error) {
		for _, msg := range batch {
			o, _ := cloudevent.OriginFrom(msg.Context())
			into <- got{o.Partition, o.Offset, o.LastOffset, string(msg.Payload), o.Unreadable}
		}
		return len(batch), nil
	}
}

// TestADamagedBatchIsHandedOverAsAGap: its checksum is wrong, so sarama fails the whole answer of the broker, for all
// partitions in it, again and again. What lies before and behind the batch arrives, and so does the other partition.
func TestADamagedBatchIsHandedOverAsAGap(t *testing.T) {
	t.Parallel()
	_, brokers := kafkatest.Fake(t, kfake.ListenFn(rotten{"rotten apple"}.listen))
	topic := kafkatest.Topic(t, brokers, 2)
	toPartition(t, brokers, topic, 0, "0", "1", "2")
	toPartition(t, brokers, topic, 0, "3", "rotten apple", "5")
	toPartition(t, brokers, topic, 0, "rotten apple")
	toPartition(t, brokers, topic, 0, "7", "8")
	toPartition(t, brokers, topic, 0, "rotten apple")
	toPartition(t, brokers, topic, 1, "a", "b")
	cfg := batches(brokers, kafkatest.Group(t))
	seen := make(chan got, 100)
	r := consume(t, cfg, topic, collect(seen))

	var here, there []got
	for len(here) < 7 || len(there) < 2 {
		if m := receive(t, seen); m.partition == 0 {
			here = append(here, m)
		} else {
			there = append(there, m)
		}
	}
	require.Equal(t, []got{{1, 0, 0, "a", nil}, {1, 1, 1, "b", nil}}, there)
	for _, gap := range []int{3, 6} {
		require.ErrorContains(t, here[gap].unreadable, "CRC")
		here[gap].unreadable = nil
	}
	require.Equal(t, []got{
		{0, 0, 0, "0", nil},
		{0, 1, 1, "1", nil},
		{0, 2, 2, "2", nil},
		{0, 3, 6, "", nil}, // two batches, one behind the other, are one gap
		{0, 7, 7, "7", nil},
		{0, 8, 8, "8", nil},
		{0, 9, 9, "", nil},
	}, here)

	toPartition(t, brokers, topic, 0, "10")
	require.Equal(t, got{0, 10, 10, "10", nil}, receive(t, seen), "and it goes on as usual")
	require.NoError(t, r.Healthy(t.Context()))
	r.stop()
	require.NoError(t, receive(t, r.ended))
	require.EqualValues(t, 11, committed(t, brokers, cfg.Group, topic))
}

// TestAGapIsHandledLikeARecord: it comes again until it is dealt with, and the other partition does not wait for it.
// What is behind it is read by the next session: on a new connection when the last one was short, on the same if not.
func TestAGapIsHandledLikeARecord(t *testing.T) {
	t.Parallel()
	for name, lasted := range map[string]time.Duration{"a short session": 0, "a long session": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handleGap(t, lasted)
		})
	}
}

func handleGap(t *testing.T, lasted time.Duration) {
	t.Helper()
	_, brokers := kafkatest.Fake(t, kfake.ListenFn(rotten{"rotten apple"}.listen))
	topic := kafkatest.Topic(t, brokers, 2)
	toPartition(t, brokers, topic, 0, "rotten apple", "1")
	cfg := batches(brokers, kafkatest.Group(t))
	clock := watched(&cfg)
	seen, refuse := make(chan got, 100), make(chan struct{})
	consume(t, cfg, topic, func(ctx context.Context, batch []*message.Message) (int, error) {
		o, _ := cloudevent.OriginFrom(batch[0].Context())
		if o.Unreadable != nil {
			select {
			case <-refuse:
			default:
				seen <- got{partition: -1}
				return 0, errors.New("not now")
			}
		}
		return collect(seen)(ctx, batch)
	})
	for range 3 {
		require.EqualValues(t, -1, receive(t, seen).partition)
	}
	toPartition(t, brokers, topic, 1, "a")
	for receive(t, seen).value != "a" {
	}
	clock.add(lasted)
	close(refuse)
	toPartition(t, brokers, topic, 0, "2")
	for {
		m := receive(t, seen)
		if m.unreadable != nil {
			require.EqualValues(t, 1, m.last)
		}
		if m.value == "2" {
			return
		}
	}
}

// TestAGapThatIsHandledForLongIsNoRefusal: the first look at the log was turned away, the next ones were not.
func TestAGapThatIsHandledForLongIsNoRefusal(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t, kfake.ListenFn(rotten{"rotten apple"}.listen))
	topic := kafkatest.Topic(t, brokers, 1)
	toPartition(t, brokers, topic, 0, "rotten apple")
	refused := make(chan struct{}, 1)
	cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].PartitionMaxBytes != 1 || len(refused) > 0 {
			return nil, nil, false
		}
		refused <- struct{}{}
		partition := kmsg.NewFetchResponseTopicPartition()
		partition.ErrorCode = kerr.TopicAuthorizationFailed.Code
		answer := kmsg.NewFetchResponseTopic()
		answer.Topic, answer.Partitions = topic, append(answer.Partitions, partition)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		resp.Topics = append(resp.Topics, answer)
		return resp, nil, true
	})
	cfg := batches(brokers, kafkatest.Group(t))
	clock := watched(&cfg)
	handle, calls := byHand()
	r := consume(t, cfg, topic, handle)
	working := receive(t, calls)
	require.Len(t, refused, 1)
	clock.pass(t, cfg.UnhealthyAfter+time.Second)
	require.NoError(t, r.Healthy(t.Context()))
	working.reply <- result{1, nil}
}

// TestADecompressionBombStopsNothing: the broker takes it, since it is small; unpacked, it would fill the memory. What
// an honest producer compresses is far below the bound.
func TestADecompressionBombStopsNothing(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	send := func(codec sarama.CompressionCodec, size int) {
		producer := rawProducer(t, brokers, func(cfg *sarama.Config) {
			cfg.Producer.Compression, cfg.Producer.MaxMessageBytes = codec, 80<<20
		})
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: topic, Value: sarama.ByteEncoder(make([]byte, size)),
		})
		require.NoError(t, err)
	}
	send(sarama.CompressionGZIP, 8<<20)
	bombs := []sarama.CompressionCodec{
		sarama.CompressionGZIP, sarama.CompressionZSTD, sarama.CompressionLZ4, sarama.CompressionSnappy,
	}
	for _, codec := range bombs {
		send(codec, 17<<20)
	}
	toPartition(t, brokers, topic, 0, "5")
	seen := make(chan got, 100)
	consume(t, batches(brokers, kafkatest.Group(t)), topic, collect(seen))
	honest := receive(t, seen)
	require.Len(t, honest.value, 8<<20)
	require.NoError(t, honest.unreadable)
	gap := receive(t, seen)
	require.EqualValues(t, 1, gap.offset)
	require.EqualValues(t, len(bombs), gap.last)
	require.ErrorIs(t, gap.unreadable, sarama.ErrDecompressedBatchTooLarge)
	require.Equal(t, got{0, 5, 5, "5", nil}, receive(t, seen))
}

// TestAnOpenTransactionIsNoStall: the log ends with records of an open transaction, behind control records; consumers
// are shown neither.
func TestAnOpenTransactionIsNoStall(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	producer := rawProducer(t, brokers, func(cfg *sarama.Config) { cfg.Producer.Transaction.ID = kafkatest.Group(t) })
	send := func(end func() error) {
		require.NoError(t, producer.BeginTxn())
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")})
		require.NoError(t, err)
		if end != nil {
			require.NoError(t, end())
		}
	}
	send(producer.CommitTxn)
	send(producer.AbortTxn)
	send(nil)
	cfg := batches(brokers, kafkatest.Group(t))
	clock := watched(&cfg)
	seen := make(chan got, 100)
	r := consume(t, cfg, topic, collect(seen))
	require.EqualValues(t, 0, receive(t, seen).offset)
	for range 30 { // a record that it took for readable would be older than StopAfter by the next look
		clock.pass(t, cfg.StopAfter+time.Second)
		require.NoError(t, r.Healthy(t.Context()))
	}
	require.Empty(t, r.ended)
	require.NoError(t, producer.CommitTxn())
	require.EqualValues(t, 4, receive(t, seen).offset)
}
