package eventing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/kafka/progress"
	"example.com/twinbox/internal/service/circuit"
)

// edge is how a node reads from Kafka. The rest is the same for each edge: inbox, handlers and their middlewares. Replicas of a service
// may have different ones while it is changed over.
type edge struct {
	// reader hands a consumer's records to its inbox.
	reader  func(*consumer) (reader, error)
	batches bool // events of a partition may share a transaction
}

// reader reads the topic of a consumer.
type reader interface {
	// Run reads until ctx ends. Then the deliveries under way have come to their end.
	Run(ctx context.Context) error
	// Standings are how the handler gets on with the partitions of this member.
	Standings() []progress.Standing
	// Healthy says why nothing is read.
	Healthy(ctx context.Context) error
}

// edge is the one that the settings name; the zero value of them names the default.
func (c KafkaConfig) edge() edge {
	if c.Edge != "watermill" {
		return batchEdge
	}
	return watermillEdge
}

// watermillEdge is watermill-kafka's Publisher and Subscriber, with Watermill's Router between it and the inbox.
var watermillEdge = edge{
	reader: newWatermillReader,
}

// quietly is the service's log for Watermill, which tells of its doings as information.
func quietly(log *slog.Logger) watermill.LoggerAdapter {
	return watermill.NewSlogLoggerWithLevelMapping(log, map[slog.Level]slog.Level{slog.LevelInfo: slog.LevelDebug})
}

// watermillReader is a Router with one handler.
type watermillReader struct {
	consumer *consumer
	began    atomic.Pointer[time.Time] // when Run did
	joined   atomic.Bool
	ends     sync.Map // partition -> where its log ended when this member began to read it
	watch    progress.Watch
}

func newWatermillReader(c *consumer) (reader, error) {
	return &watermillReader{consumer: c}, c.members.Validate()
}

// Run consumes until ctx ends. Handlers under way are cancelled then, and their events come again.
func (r *watermillReader) Run(ctx context.Context) error {
	began := time.Now()
	r.began.Store(&began)
	c, members := r.consumer, r.consumer.members.WithDefaults()
	log := quietly(c.node.Log.With("consumer", c.Name))
	subscriber, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{
		Brokers: members.Brokers, ConsumerGroup: members.Group, Unmarshaler: kafka.Marshaler{},
		OverwriteSaramaConfig: members.Consumer(), ReconnectRetrySleep: members.ReconnectBackoff,
		Tracer: sessions{reader: r, ctx: ctx},
	}, log)
	if err != nil {
		return fmt.Errorf("make subscriber: %w", err)
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: members.DrainTimeout}, log)
	if err != nil {
		return fmt.Errorf("make router: %w", err)
	}
	deliver := c.inbox.Middleware(c.handle)
	router.AddConsumerHandler(c.Name, c.Topic, patientSubscriber{subscriber, c.node.dependencies.broker},
		func(msg *message.Message) (err error) {
			partition, _ := wkafka.MessagePartitionFromCtx(msg.Context())
			ctx, end := r.watch.Call(msg.Context(), c.Topic, partition)
			msg.SetContext(ctx)
			defer func() { end(err) }()
			if err := c.awaitResume(ctx); err != nil {
				return err
			}
			if end, known := r.ends.Load(partition); known {
				msg.SetContext(cloudevent.WithLogEnd(msg.Context(), end.(int64)))
			}
			_, err = deliver(msg)
			return err
		})
	return router.Run(ctx)
}

// Standings are those of the partitions that had a record.
func (r *watermillReader) Standings() []progress.Standing { return r.watch.Standings() }

// joinPatience is how long Healthy overlooks that the member has not joined its group: its topic may be another
// service's to create, which is started at the same time.
const joinPatience = 30 * time.Second

// Healthy says whether the member has ever joined its group. That it reads nothing since is not seen.
func (r *watermillReader) Healthy(context.Context) error {
	began := r.began.Load()
	if began == nil {
		return errors.New("not started")
	}
	if away := time.Since(*began); !r.joined.Load() && away > joinPatience {
		return fmt.Errorf("not a member of the group for %s", away.Round(time.Second))
	}
	return nil
}

// patientSubscriber waits for a broker that is down when it subscribes, where watermill-kafka gives up.
type patientSubscriber struct {
	message.Subscriber
	broker *circuit.Circuit
}

func (s patientSubscriber) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	for {
		messages, err := s.Subscriber.Subscribe(ctx, topic)
		if err == nil {
			return messages, nil
		}
		s.broker.Report(err)
		if s.broker.Pause(ctx, time.Second) != nil {
			none := make(chan *message.Message)
			close(none)
			return none, nil
		}
	}
}

// sessions hears of the group's sessions and partitions in the one place that watermill-kafka lets others into.
type sessions struct {
	wkafka.SaramaTracer // nil: of a subscriber with a group it wraps the handler and nothing else
	reader              *watermillReader
	ctx                 context.Context //nolint:containedctx // of the whole run, not of a call
}

func (s sessions) WrapConsumerGroupHandler(h sarama.ConsumerGroupHandler) sarama.ConsumerGroupHandler {
	return claims{h, s}
}

type claims struct {
	sarama.ConsumerGroupHandler
	sessions
}

func (c claims) Setup(session sarama.ConsumerGroupSession) error {
	c.reader.joined.Store(true)
	return c.ConsumerGroupHandler.Setup(session)
}

// ConsumeClaim returns when the partition goes and its last message was handled, or when the consumer stops.
func (c claims) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	c.reader.ends.Store(claim.Partition(), claim.HighWaterMarkOffset())
	err := c.ConsumerGroupHandler.ConsumeClaim(session, claim)
	c.reader.watch.Forget(claim.Topic(), claim.Partition())
	if c.ctx.Err() == nil {
		c.reader.consumer.lost(claim.Topic(), claim.Partition(), true)
	}
	return err
}
