package kafka_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestEnsureTopicsIsIdempotent(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg := kafka.Config{Brokers: brokers}
	name := kafkatest.Group(t)
	topics := []kafka.Topic{
		{Name: name + ".a", Partitions: 3, Retention: 36 * time.Hour},
		{Name: name + ".b", Partitions: 1, Retention: -1},
		{Name: name + ".c", Partitions: 2},
	}
	var callers sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		callers.Go(func() { errs[i] = kafka.EnsureTopics(t.Context(), cfg, topics...) })
	}
	callers.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	found, err := kafka.DescribeTopics(t.Context(), cfg, name+".a", name+".b", name+".c", name+".missing")
	require.NoError(t, err)
	require.Equal(t, map[string]time.Duration{name + ".a": 36 * time.Hour, name + ".b": -1, name + ".c": 168 * time.Hour},
		retention(found), "the last one is the broker's default")
	require.Greater(t, found[name+".a"].MaxBytes, 1_000_000, "the broker's default")
	require.EqualValues(t, 3, found[name+".a"].Partitions)
	require.EqualValues(t, 1, found[name+".b"].Partitions)
	require.NoError(t, publish(t, cfg, name+".c"), "ready at once")
}

func retention(of map[string]kafka.TopicState) map[string]time.Duration {
	kept := make(map[string]time.Duration, len(of))
	for name, settings := range of {
		kept[name] = settings.Retention
	}
	return kept
}

func TestWhatIsOnlyCompactedIsKeptForEver(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	want := map[string]time.Duration{}
	for policy, kept := range map[string]time.Duration{"compact": -1, "compact,delete": time.Minute} {
		name, ms := kafkatest.Group(t), "60000"
		want[name] = kept
		require.NoError(t, kafkatest.Admin(t, brokers).CreateTopic(name, &sarama.TopicDetail{
			NumPartitions: 1, ReplicationFactor: 1,
			ConfigEntries: map[string]*string{"retention.ms": &ms, "cleanup.policy": &policy},
		}, false))
	}
	names := slices.Collect(maps.Keys(want))
	testkit.Until(t, func() bool { // a broker learns of a new topic after the controller's answer
		found, err := kafka.DescribeTopics(t.Context(), kafka.Config{Brokers: brokers}, names...)
		return err == nil && maps.Equal(want, retention(found))
	})
}

func TestExistingTopicsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg := kafka.Config{Brokers: brokers}
	name, other := kafkatest.Group(t), kafkatest.Group(t)
	require.NoError(t, kafka.EnsureTopics(t.Context(), cfg, kafka.Topic{Name: name, Partitions: 3}))

	err := kafka.EnsureTopics(t.Context(), cfg, kafka.Topic{Name: name, Partitions: 6},
		kafka.Topic{Name: kafkatest.Group(t)}, kafka.Topic{Name: other, Partitions: 1})
	require.ErrorIs(t, err, sarama.ErrInvalidPartitions)
	require.NotContains(t, err.Error(), name)
	found, err := kafka.DescribeTopics(t.Context(), cfg, name)
	require.NoError(t, err)
	require.EqualValues(t, 3, found[name].Partitions)
	require.NoError(t, publish(t, cfg, other), "the others are created")
}

// A producer's clock may be days late; retention would then delete its new records.
func TestTheBrokerWritesTheTimesOfRecords(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	cfg, made, old := kafka.Config{Brokers: brokers}, kafkatest.Group(t), kafkatest.Group(t)
	byProducer := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}
	require.NoError(t, kafkatest.Admin(t, brokers).CreateTopic(old, byProducer, false))
	testkit.Until(t, func() bool { // a broker knows a new topic a moment later
		settings, err := kafka.DescribeTopics(t.Context(), cfg, old)
		return err == nil && settings[old].CreateTime
	})
	topics := []kafka.Topic{{Name: made, Partitions: 1}, {Name: old, Partitions: 1}}
	for range 2 {
		require.NoError(t, kafka.EnsureTopics(t.Context(), cfg, topics...))
	}
	testkit.Until(t, func() bool {
		settings, err := kafka.DescribeTopics(t.Context(), cfg, made, old)
		return err == nil && !settings[made].CreateTime && !settings[old].CreateTime
	})
	if !kafkatest.IsReal() {
		return // the broker in process stores the setting and ignores it
	}
	began := time.Now().Add(-time.Second)
	for _, topic := range []string{made, old} {
		_, _, err := rawProducer(t, brokers, nil).SendMessage(&sarama.ProducerMessage{
			Topic: topic, Value: sarama.StringEncoder("x"), Timestamp: time.Now().Add(-8 * 24 * time.Hour),
		})
		require.NoError(t, err)
		require.WithinRange(t, kafkatest.ReadAll(t, brokers, topic, 1)[0].Timestamp, began, time.Now().Add(time.Second))
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	require.NoError(t, kafka.Ping(t.Context(), kafka.Config{Brokers: brokers}))

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, kafka.Ping(ctx, kafka.Config{Brokers: []string{"127.0.0.1:1"}}))
	cancel()
	require.ErrorIs(t, kafka.Ping(ctx, kafka.Config{Brokers: brokers}), context.Canceled)
	require.Error(t, kafka.Ping(t.Context(), kafka.Config{}))
	require.Error(t, kafka.EnsureTopics(t.Context(), kafka.Config{Brokers: []string{"127.0.0.1:1"}}))
}

// A stopped broker accepts connections and never answers.
func TestAQuestionToASilentBrokerEndsInTime(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{muteBroker(t).Addr().String()}}
	for name, ask := range map[string]func(ctx context.Context) error{
		"ping":     func(ctx context.Context) error { return kafka.Ping(ctx, cfg) },
		"describe": func(ctx context.Context) error { _, err := kafka.DescribeTopics(ctx, cfg, "t"); return err },
		"log": func(ctx context.Context) error {
			return kafka.Ask(ctx, cfg, "scan", func(c kafka.Cluster) error {
				_, err := c.Scan("t", 0, 0, 1, func(*message.Message) error { return nil })
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 500 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			require.Error(t, ask(ctx))
			require.Less(t, time.Since(began), 10*limit, "not after the client's own patience")
			<-ctx.Done() // it may end a moment after its deadline
			require.ErrorIs(t, ask(ctx), context.DeadlineExceeded)
		})
	}
}

func publish(t testing.TB, cfg kafka.Config, topic string) error {
	t.Helper()
	_, _, err := rawProducer(t, cfg.Brokers, nil).SendMessage(&sarama.ProducerMessage{
		Topic: topic, Value: sarama.StringEncoder("a"),
	})
	return err
}
