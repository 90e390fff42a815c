package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func rawProducer(t testing.TB, brokers []string, change func(*sarama.Config)) sarama.SyncProducer {
	t.Helper()
	cfg := kafka.Config{Brokers: brokers}.Producer()
	if change != nil {
		change(cfg)
	}
	producer, err := sarama.NewSyncProducer(brokers, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, producer.Close()) })
	return producer
}

func transactional(
	t testing.TB, brokers []string, topic string,
) (producer sarama.SyncProducer, send func(end func() error)) {
	t.Helper()
	producer = rawProducer(t, brokers, func(cfg *sarama.Config) { cfg.Producer.Transaction.ID = kafkatest.Group(t) })
	return producer, func(end func() error) {
		require.NoError(t, producer.BeginTxn())
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("x")})
		require.NoError(t, err)
		require.NoError(t, end())
	}
}

func TestAnUndecodableRecordStopsNothing(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	many := make([]sarama.RecordHeader, 1000)
	for i := range many {
		many[i] = sarama.RecordHeader{Key: []byte("h"), Value: []byte{0xff}}
	}
	require.NoError(t, rawProducer(t, brokers, nil).SendMessages([]*sarama.ProducerMessage{
		{Topic: topic},
		{Topic: topic, Value: sarama.StringEncoder("")},
		{Topic: topic, Value: sarama.StringEncoder("{not json"), Headers: many},
		{Topic: topic, Key: sarama.ByteEncoder(make([]byte, 10_000)), Headers: []sarama.RecordHeader{{Key: []byte{}}}},
	}))
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, newEvent("a", 1)))
	m := join(t, singles(brokers, kafkatest.Group(t)), topic)
	require.Equal(t, []string{"", "", "", "", "a-1"}, m.read(t, 5))
}

func TestAPartitionWhoseOffsetIsGoneIsNotRead(t *testing.T) {
	t.Parallel()
	for _, hasPoint := range []bool{true, false} {
		t.Run(fmt.Sprintf("point %t", hasPoint), func(t *testing.T) {
			t.Parallel()
			brokers := kafkatest.Brokers(t)
			topic := kafkatest.Topic(t, brokers, 2)
			points := &database{points: map[int32]event.Point{}}
			cfg := singles(brokers, kafkatest.Group(t))
			cfg.UnhealthyAfter, cfg.Points = 50*time.Millisecond, points
			for range 5 {
				toPartition(t, brokers, topic, 0, "x")
			}
			m := join(t, cfg, topic)
			m.read(t, 1)
			receive(t, m.calls)
			m.close()
			require.EqualValues(t, 1, committed(t, brokers, cfg.Group, topic))
			deleteRecords(t, brokers, topic, 4) // as retention does after a long downtime
			if !hasPoint {
				clear(points.points)
			}

			m = join(t, cfg, topic)
			testkit.Until(t, func() bool { return errors.Is(m.Healthy(t.Context()), kafka.ErrOffsetGone) })
			require.ErrorContains(t, m.Healthy(t.Context()), topic+"/0: cannot be read")
			toPartition(t, brokers, topic, 1, "other")
			other := receive(t, m.calls)
			require.EqualValues(t, 1, other.place().Partition)
			other.ack()
			m.close()
			require.EqualValues(t, 1, committed(t, brokers, cfg.Group, topic), "nothing is skipped silently")
		})
	}
}

func deleteRecords(t testing.TB, brokers []string, topic string, before int64) {
	t.Helper()
	require.NoError(t, admin(t, brokers).DeleteRecords(topic, map[int32]int64{0: before}))
}

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

type lines struct {
	slog.Handler
	mu           sync.Mutex
	texts, codes []string
}

func (*lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level < slog.LevelInfo {
		return nil
	}
	l.texts = append(l.texts, r.Message)
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "code" {
			l.codes = append(l.codes, attr.Value.String())
		}
		return true
	})
	return nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.texts)
}

func (l *lines) allCodes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.codes)
}

func TestAGroupThatCannotBeJoinedIsNotHammered(t *testing.T) {
	t.Parallel()
	t.Run("a right is missing", func(t *testing.T) { testRefusedJoin(t, kerr.GroupAuthorizationFailed) })
	t.Run("unknown", func(t *testing.T) { testRefusedJoin(t, kerr.UnknownServerError) })
}

func testRefusedJoin(t *testing.T, why *kerr.Error) {
	t.Helper()
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, newEvent("a", 1)))
	joins := cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Err: why, Count: -1,
	})
	log := &lines{}
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.Backoff, cfg.UnhealthyAfter = 50*time.Millisecond, time.Hour
	var m *member
	pprof.Do(t.Context(), pprof.Labels("group", cfg.Group), func(context.Context) { // its goroutines have the label
		m = consume(t, cfg, topic, nil, slog.New(log))
	})

	began := time.Now()
	require.NoError(t, joins.Wait(t.Context(), 5))
	require.LessOrEqual(t, goroutinesOf(t, cfg.Group, "Subscriber).consumeMessages.func1"), 2, "none of earlier attempts")
	require.Greater(t, time.Since(began), (50+100+200+400)/2*time.Millisecond, "the waits between them, less the jitter")
	require.ErrorContains(t, m.Healthy(t.Context()), "not a member of the group")
	require.Equal(t, []string{"consume failed, trying again"}, log.all())

	joins.Remove()
	m.read(t, 1)
	require.NoError(t, m.Healthy(t.Context()))
	require.Equal(t, "consuming", log.all()[1])
}

var equalStacks = regexp.MustCompile(`(?m)^(\d+) @ `)

func goroutinesOf(t *testing.T, group, function string) (n int) {
	t.Helper()
	var stacks strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 1))
	for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
		if strings.Contains(stack, group) && strings.Contains(stack, function) {
			same, err := strconv.Atoi(equalStacks.FindStringSubmatch(stack)[1])
			require.NoError(t, err)
			n += same
		}
	}
	return n
}

func TestABrokerThatIsAwayAtTheStartIsWaitedFor(t *testing.T) {
	t.Parallel()
	start := restartable(t)
	cluster, brokers := start()
	topic, ids := published(t, brokers, 3)
	cluster.Close()

	m := join(t, singles(brokers, kafkatest.Group(t)), topic)
	m.requireSilent(t)
	start()
	require.Equal(t, ids, m.read(t, 3))
}

func TestALostSessionCancelsHandlersAtOnce(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic, ids := published(t, brokers, 2)
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.DrainTimeout, cfg.RebalanceTimeout = 4*kafkatest.Patience, 10*kafkatest.Patience
	m := join(t, cfg, topic)
	working := receive(t, m.calls)
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID})
	<-working.batch[0].Context().Done()
	require.ErrorContains(t, context.Cause(working.ctx), "partition lost")
	require.Equal(t, ids, m.read(t, 2), "it comes again to the partition's next owner")
}

// A broker that takes a request and never answers is asked again, although joining a group may take longer.
func TestABrokerThatGivesNoRecordsIsAskedAgain(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic := kafkatest.Topic(t, brokers, 1)
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.RebalanceTimeout, cfg.RequestTimeout = time.Hour, time.Second
	m := join(t, cfg, topic)
	publisher := newPublisher(t, kafka.Config{Brokers: brokers})
	require.NoError(t, publisher.Publish(topic, newEvent("a", 1)))
	require.Equal(t, []string{"a-1"}, m.read(t, 1))

	cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, nil, true // once: handled, without an answer
	})
	require.NoError(t, publisher.Publish(topic, newEvent("a", 2)))
	require.Equal(t, []string{"a-2"}, m.read(t, 1))
}
