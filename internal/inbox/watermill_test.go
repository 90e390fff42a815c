package inbox_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// routed runs a topic through a Router on watermill-kafka with the inbox and the given middlewares only.
func routed(
	t *testing.T, brokers []string, topic string, in *inbox.Inbox, handler message.NoPublishHandlerFunc,
	with ...message.HandlerMiddleware,
) {
	t.Helper()
	cfg := wkafka.DefaultSaramaSubscriberConfig()
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: brokers, ConsumerGroup: kafkatest.Group(t), OverwriteSaramaConfig: cfg,
	}, nil)
	require.NoError(t, err)
	router := message.NewDefaultRouter(watermill.NopLogger{})
	router.AddConsumerHandler("test", topic, subscriber, handler).AddMiddleware(append(with, in.Middleware)...)
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		require.NoError(t, router.Close())
		require.NoError(t, <-ended)
	})
}

func publishPlain(t *testing.T, brokers []string, topic string, events ...event.Event) {
	t.Helper()
	publisher, err := wkafka.NewPublisher(wkafka.PublisherConfig{
		Brokers: brokers,
		Marshaler: wkafka.NewWithPartitioningMarshaler(func(_ string, msg *message.Message) (string, error) {
			return msg.Metadata[event.HeaderSubject], nil
		}),
	}, nil)
	require.NoError(t, err)
	for _, e := range events {
		require.NoError(t, publisher.Publish(topic, e.Message()))
	}
	require.NoError(t, publisher.Close())
}

func TestAPlainHandlerOnWatermillKafka(t *testing.T) {
	t.Parallel()
	b := setup(t)
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	good, bad := newEvent(), newEvent()
	bad.Key, bad.Extensions = "key-2", map[string]string{"x": "1"}
	publishPlain(t, brokers, topic, good, bad)
	b.Config.Group = "local.stock"
	outcomes := make(chan inbox.Outcome, 2)
	b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes <- o }
	_, outside := inbox.TxFromContext(t.Context())
	_, found := inbox.EventFromContext(t.Context())
	require.Equal(t, []bool{false, false}, []bool{outside, found})

	routed(t, brokers, topic, b.Inbox(t), func(msg *message.Message) error {
		tx, inTx := inbox.TxFromContext(msg.Context())
		e, isEvent := inbox.EventFromContext(msg.Context())
		if !inTx || !isEvent || e.ID != msg.UUID {
			return errors.New("nothing in the context")
		}
		if _, err := tx.Exec(msg.Context(), `insert into ledger (event_id) values ($1)`, e.ID); err != nil {
			return err
		}
		if e.ID == bad.ID {
			return inbox.Permanent(errors.New("will never do"))
		}
		return nil
	}, kafka.Origin)
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Dead}, []inbox.Outcome{<-outcomes, <-outcomes})
	require.Equal(t, 1, b.Effects(t, good.ID))
	require.Zero(t, b.Effects(t, bad.ID), "rolled back")

	require.Equal(t, 1, b.Count(t, `select count(*) from inbox_owner where topic = $1 and partition = 0`, topic),
		"a record that ends its process would be found")
	require.Equal(t, 1, b.Count(t, `select count(*) from inbox where event_id = $1 and metadata @> jsonb_build_object(
		'group', 'local.stock', 'topic', $2::text, 'partition', 0, 'offset', 0)`, good.ID, topic))
	var headers []byte
	var recorded time.Time
	require.NoError(t, b.Pool.QueryRow(t.Context(), `select headers, record_time from dead_letter where event_id = $1
		and consumer_group = 'local.stock' and topic = $2 and partition = 0 and record_offset = 1 and key = 'key-2'`,
		bad.ID, topic).Scan(&headers, &recorded))
	require.WithinDuration(t, time.Now(), recorded, time.Minute)
	var pairs [][2]string
	require.NoError(t, json.Unmarshal(headers, &pairs))
	require.Contains(t, pairs, [2]string{"ce_id", base64.StdEncoding.EncodeToString([]byte(bad.ID))})
	require.Contains(t, pairs, [2]string{"x", "MQ=="})
	require.NotContains(t, string(headers), "record_key")
}
