package inbox_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/retention"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

// asEvent makes an event of a message of Watermill's cqrs, which has its type in "name". The id is the message's UUID.
func asEvent(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		m := msg.Metadata
		m["ce_specversion"], m["ce_source"], m["ce_type"] = "1.0", "/shop", m["name"]
		m["ce_subject"], m["record_key"] = m["order_id"], m["order_id"] // the key
		return next(msg)
	}
}

// copying copies dead letters. A relay publishes the copies.
type copying struct {
	inbox.Standalone
	outbox *outbox.Outbox
}

func (c copying) CopyDeadLetter(ctx context.Context, tx pgx.Tx, letter deadletter.Letter) error {
	_, err := c.outbox.Add(ctx, tx, letter.Copy("/shop"))
	if _, isRefused := errors.AsType[*outbox.EventError](err); isRefused {
		return nil // it would be refused again
	}
	return err
}

// runShop runs a handler under a Router of Watermill until ctx ends. cfg has the Consumer, the Group, the Pool and the
// Host, which is a copying.
func runShop(
	ctx context.Context, cfg inbox.Config, brokers []string, topic string, handle message.NoPublishHandlerFunc,
) error {
	settings := wkafka.DefaultSaramaSubscriberConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest // a new group misses no event
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: brokers, ConsumerGroup: cfg.Group, OverwriteSaramaConfig: settings,
	}, watermill.NewSlogLogger(cfg.Log))
	if err != nil {
		return err
	}
	box, err := inbox.New(cfg)
	if err != nil {
		return err
	}
	const retained = 10 * 24 * time.Hour // must be longer than the retention of the topic
	janitor, err := retention.New(retention.Config{Pool: cfg.Pool, Retention: retained, Log: cfg.Log})
	if err != nil {
		return err
	}
	router := message.NewDefaultRouter(watermill.NewSlogLogger(cfg.Log))
	router.AddConsumerHandler(cfg.Consumer, topic, subscriber, handle).
		AddMiddleware(kafka.Origin, asEvent, box.Middleware)
	replays := inbox.NewReplayer(box, func(msg *message.Message) ([]*message.Message, error) {
		return nil, handle(msg)
	})
	ctx, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { _ = janitor.Run(ctx) })
	others.Go(func() { _ = replays.ResumeParked(ctx) })
	err = router.Run(ctx)
	stop()
	others.Wait()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return errors.Join(err, box.Close(closing))
}

func TestARouterOfYourOwn(t *testing.T) {
	t.Parallel()
	b := newBundle(pgtest.New(t, migrations.Audit, migrations.Outbox, migrations.Inbox))
	b.Exec(t, `create table ledger (n bigint generated always as identity, event_id text)`)
	out, err := outbox.New(outbox.Config{})
	require.NoError(t, err)
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 1)
	outcomes := make(chan inbox.Outcome, 3)
	b.Host.Copy = copying{outbox: out}.CopyDeadLetter
	b.Host.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes <- o }
	b.Config.Group, b.Config.Consumer = kafkatest.Group(t), "shop.orders"

	publisher, err := wkafka.NewPublisher(wkafka.PublisherConfig{
		Brokers: brokers, Marshaler: wkafka.DefaultMarshaler{},
	}, nil)
	require.NoError(t, err)
	placed := func(order string) *message.Message {
		msg := message.NewMessage(uuid.Must(uuid.NewV7()).String(), []byte(`{}`))
		msg.Metadata = message.Metadata{"name": testType, "order_id": order}
		return msg
	}
	good, bad := placed("order-1"), placed("order-2")
	require.NoError(t, publisher.Publish(topic, good, bad, good))
	require.NoError(t, publisher.Close())

	isMended := false
	handle := func(msg *message.Message) error {
		tx, inTx := inbox.TxFromContext(msg.Context())
		e, isEvent := inbox.EventFromContext(msg.Context())
		if !inTx || !isEvent || e.ID != msg.UUID || e.Type != testType {
			return fmt.Errorf("nothing in the context: %v", e)
		}
		if _, err := tx.Exec(msg.Context(), `insert into ledger (event_id) values ($1)`, e.ID); err != nil {
			return err
		}
		if e.Key == "order-2" && !isMended {
			return inbox.Permanent(errors.New("will never do"))
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runShop(ctx, b.Config, brokers, topic, handle) }()
	require.Equal(t, []inbox.Outcome{inbox.Applied, inbox.Dead, inbox.Duplicate},
		[]inbox.Outcome{<-outcomes, <-outcomes, <-outcomes})
	require.Equal(t, 1, b.Effects(t, good.UUID))
	require.Zero(t, b.Effects(t, bad.UUID), "rolled back")
	require.Equal(t, 1, b.Count(t, `select count(*) from inbox_owner where topic = $1 and partition = 0`, topic),
		"a record that ends its process would be found")
	stop()
	require.NoError(t, <-ended)
	require.Zero(t, b.Count(t, `select count(*) from inbox_owner`), "the next owner suspects no event")

	require.Equal(t, 1, b.Count(t, `select count(*) from inbox where event_id = $1 and metadata @> jsonb_build_object(
		'group', $2::text, 'topic', $3::text, 'partition', 0, 'offset', 0)`, good.UUID, b.Config.Group, topic))
	require.Equal(t, 1, b.Count(t, `select count(*) from outbox where topic = $1 and key = 'order-2'`,
		deadletter.CopyTopic(b.Config.Group, topic)))
	var headers []byte
	var recorded time.Time
	require.NoError(t, b.Pool.QueryRow(t.Context(), `select headers, record_time from dead_letter where event_id = $1
		and consumer_group = $2 and topic = $3 and partition = 0 and record_offset = 1 and key = 'order-2'`,
		bad.UUID, b.Config.Group, topic).Scan(&headers, &recorded))
	require.WithinDuration(t, time.Now(), recorded, time.Minute)
	var pairs [][2]string
	require.NoError(t, json.Unmarshal(headers, &pairs))
	require.Contains(t, pairs, [2]string{"ce_id", base64.StdEncoding.EncodeToString([]byte(bad.UUID))})
	require.Contains(t, pairs, [2]string{"order_id", base64.StdEncoding.EncodeToString([]byte("order-2"))})
	require.NotContains(t, string(headers), "record_key")

	isMended = true
	replays := inbox.NewReplayer(b.Inbox(t), func(msg *message.Message) ([]*message.Message, error) {
		return nil, handle(msg)
	})
	require.NoError(t, replays.Replay(t.Context(), deadletter.Filter{},
		inbox.Options{Change: audit.Change{By: "ada", Reason: "mended"}}))
	require.Equal(t, 1, b.Effects(t, bad.UUID))
}
