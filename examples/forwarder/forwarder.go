// Package forwarder is an example without a database: it posts each event of a topic to a URL. It uses watermill-kafka
// and a Router with PoisonQueue, and remembers in NATS which events it has delivered.
package forwarder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/kv"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/web"
)

var Program = service.Program[Config]{Name: "forwarder", Settings: Config.settings, Serve: Run}

// Run forwards until ctx is cancelled. A missing Kafka or NATS is an error at the start only: it waits for later
// outages to end.
func Run(ctx context.Context, cfg Config, host service.Host) error {
	group := service.NewGroup(ctx, host.Log, cfg.DrainFor)
	f := &forwarder{
		cfg: cfg, log: host.Log,
		admin: service.NewAdmin(service.AdminConfig{Log: host.Log, Draining: group.Context().Done()}),
	}
	bound, err := f.open(ctx, group)
	if err != nil {
		group.Go("start", func(context.Context) error { return err })
	} else {
		host.Announce(bound)
	}
	return group.Wait()
}

type forwarder struct {
	cfg   Config
	log   *slog.Logger
	admin *service.Admin

	dead       *kafka.Publisher
	subscriber *kafka.Subscriber
	router     *message.Router
}

func (f *forwarder) open(ctx context.Context, group *service.Group) (bound service.Listeners, err error) {
	admin, err := new(net.ListenConfig).Listen(ctx, "tcp", f.cfg.AdminAddr)
	if err != nil {
		return bound, fmt.Errorf("open admin listener: %w", err)
	}
	bound.Admin = admin.Addr().String()
	group.Go("admin", func(ctx context.Context) error { return f.admin.Serve(ctx, admin) })
	url := f.cfg.URL
	if f.cfg.ReceiverAddr != "" {
		receiver, err := new(net.ListenConfig).Listen(ctx, "tcp", f.cfg.ReceiverAddr)
		if err != nil {
			return bound, fmt.Errorf("open receiver: %w", err)
		}
		bound.API = receiver.Addr().String()
		url = cmp.Or(url, "http://"+bound.API+"/")
		server := &web.Server{Handler: newReceiver(), Log: f.log, DrainTimeout: time.Second}
		group.Go("receiver", func(ctx context.Context) error { return server.Serve(ctx, receiver) })
	}
	inbox, err := f.openInbox(ctx, group)
	if err != nil {
		return bound, err
	}
	if err := f.connect(group); err != nil {
		return bound, err
	}
	to := hook{url: url, client: &http.Client{CheckRedirect: stay, Timeout: f.cfg.Timeout}}
	if err := f.route(inbox.Middleware(f.cfg.Group), to); err != nil {
		return bound, err
	}
	group.Go("router", f.router.Run)
	return bound, nil
}

func (f *forwarder) openInbox(ctx context.Context, group *service.Group) (*kv.Inbox, error) {
	server, err := nats.Connect(f.cfg.NATSURL, nats.Name("forwarder"),
		nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), // see kv.Bucket
		nats.ReconnectWait(500*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { f.log.Warn("nats", "error", err) }))
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	group.OnStop("nats", func() error {
		server.Close()
		return nil
	})
	f.admin.Check("nats", server.FlushWithContext)
	js, err := jetstream.New(server)
	if err != nil {
		return nil, err
	}
	store, err := kv.Bucket(ctx, js, kv.BucketConfig{Name: f.cfg.Bucket, TTL: f.cfg.TTL})
	if err != nil {
		return nil, err
	}
	return kv.New(store, kv.Config{
		Owner: f.cfg.Instance, HandlerTimeout: f.cfg.Timeout, Log: f.log, Registerer: f.admin.Registry(),
	})
}

func (f *forwarder) connect(group *service.Group) (err error) {
	log := f.quietly()
	reading := kafka.DefaultSaramaSubscriberConfig()
	reading.Version = sarama.V3_6_0_0
	reading.Consumer.Offsets.Initial = sarama.OffsetOldest // the default begins after the records that are there
	f.subscriber, err = kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: f.cfg.KafkaBrokers, Unmarshaler: kafka.DefaultMarshaler{}, ConsumerGroup: f.cfg.Group,
		OverwriteSaramaConfig:  reading,
		InitializeTopicDetails: &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: -1},
	}, log)
	if err != nil {
		return fmt.Errorf("make subscriber: %w", err)
	}
	group.OnStop("subscriber", f.subscriber.Close)
	if err := f.subscriber.SubscribeInitialize(f.cfg.DeadTopic); err != nil {
		return fmt.Errorf("create topic %s: %w", f.cfg.DeadTopic, err)
	}
	writing := kafka.DefaultSaramaSyncPublisherConfig()
	writing.Version, writing.Producer.RequiredAcks = sarama.V3_6_0_0, sarama.WaitForAll
	f.dead, err = kafka.NewPublisher(kafka.PublisherConfig{
		Brokers: f.cfg.KafkaBrokers, OverwriteSaramaConfig: writing,
		Marshaler: kafka.NewWithPartitioningMarshaler(func(_ string, msg *message.Message) (string, error) {
			key, _ := kafka.MessageKeyFromCtx(msg.Context())
			return string(key), nil
		}),
	}, log)
	if err != nil {
		return fmt.Errorf("make publisher: %w", err)
	}
	group.OnStop("publisher", f.dead.Close)
	return nil
}

// route puts the middlewares around the delivery, outermost first. The inbox is innermost: an event that went to the
// dead topic is not remembered, and can be sent again from there.
func (f *forwarder) route(inbox message.HandlerMiddleware, to hook) (err error) {
	f.router, err = message.NewRouter(message.RouterConfig{CloseTimeout: f.cfg.DrainFor}, f.quietly())
	if err != nil {
		return err
	}
	poison, err := middleware.PoisonQueueWithFilter(f.dead, f.cfg.DeadTopic, isDelivery)
	if err != nil {
		return err
	}
	f.router.AddConsumerHandler("forward", f.cfg.Topic, f.subscriber, to.deliver).
		AddMiddleware(poison, f.retry, inbox)
	f.admin.Check("router", func(context.Context) error {
		if !f.router.IsRunning() {
			return errors.New("the router does not run")
		}
		return nil
	})
	return nil
}

// retry repeats a delivery that may yet succeed. A stop in between is its error, so the event comes again. Watermill's
// Retry pauses several times longer than it is set to if it has a ShouldRetry or an OnRetryHook.
func (f *forwarder) retry(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		log := f.log.With("event_id", eventID(msg))
		pauses := failure.Backoff{Min: f.cfg.RetryMin, Max: 30 * time.Second}
		for attempt := 1; ; attempt++ {
			produced, err := next(msg)
			switch {
			case err == nil || !isDelivery(err):
				return produced, err
			case msg.Context().Err() != nil:
				return nil, context.Cause(msg.Context())
			case attempt >= f.cfg.MaxAttempts || failure.Classify(err) == failure.Permanent:
				log.Error("event given up", "topic", f.cfg.DeadTopic, "error", err)
				return produced, err
			}
			pause := pauses.Next()
			log.Warn("delivery failed", "attempt", attempt, "retry_in", pause, "error", err)
			if err := failure.Sleep(msg.Context(), pause); err != nil {
				return nil, err
			}
		}
	}
}

func (f *forwarder) quietly() watermill.LoggerAdapter {
	return watermill.NewSlogLoggerWithLevelMapping(f.log, map[slog.Level]slog.Level{slog.LevelInfo: slog.LevelDebug})
}
