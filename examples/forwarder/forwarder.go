// Package forwarder is an example without a database: it posts each event of a topic to a URL. It uses watermill-kafka
// and a Router with Retry and PoisonQueue, and remembers in NATS which events it has delivered.
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

	"example.com/twinbox/internal/inbox/kv"
	"example.com/twinbox/internal/service"
)

// Program is its command line.
var Program = service.Program[Config]{Name: "forwarder", Settings: Config.settings, Serve: Run}

// Run forwards until ctx is cancelled. A missing Kafka or NATS is an error at the start only: it waits for later
// outages to end.
func Run(ctx context.Context, cfg Config, host service.Host) error {
	group := service.NewGroup(ctx, host.Log, cfg.DrainFor)
	f := &forwarder{
		cfg: cfg, log: host.Log,
		admin: service.NewAdmin(service.AdminConfig{Log: host.Log, Draining: group.Draining()}),
	}
	group.OnStop("connections", f.close)
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

	nats       *nats.Conn
	dead       *kafka.Publisher
	subscriber *kafka.Subscriber
	router     *message.Router
}

func (f *forwarder) open(ctx context.Context, group *service.Group) (bound service.Listening, err error) {
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
		group.Go("receiver", func(ctx context.Context) error { return serve(ctx, receiver, &Receiver{}) })
	}
	inbox, err := f.openInbox(ctx)
	if err != nil {
		return bound, err
	}
	if err := f.connect(); err != nil {
		return bound, err
	}
	to := hook{url: url, client: &http.Client{CheckRedirect: stay, Timeout: f.cfg.Timeout}}
	if err := f.route(inbox.Middleware(f.cfg.Group), to); err != nil {
		return bound, err
	}
	group.Go("router", f.router.Run)
	select {
	case <-f.router.Running():
		return bound, nil
	case <-group.Context().Done():
		return bound, errors.New("the router did not start")
	}
}

func (f *forwarder) openInbox(ctx context.Context) (_ *kv.Inbox, err error) {
	f.nats, err = nats.Connect(f.cfg.NATSURL, nats.Name("forwarder"),
		nats.MaxReconnects(-1), nats.ReconnectBufSize(-1), // see kv.Bucket
		nats.ReconnectWait(500*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { f.log.Warn("nats", "error", err) }))
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	f.admin.Check("nats", func(ctx context.Context) error { return f.nats.FlushWithContext(ctx) })
	js, err := jetstream.New(f.nats)
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

func (f *forwarder) connect() (err error) {
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
	retry := middleware.Retry{
		MaxRetries: f.cfg.MaxAttempts - 1, InitialInterval: f.cfg.RetryMin, MaxInterval: 30 * time.Second,
		Multiplier: 2, RandomizationFactor: 0.2,
		ShouldRetry: func(params middleware.RetryParams) bool { return isWorthwhile(params.Err) },
		OnRetryHook: func(attempt int, pause time.Duration) {
			f.log.Warn("delivery failed", "attempt", attempt, "retry_in", pause)
		},
	}
	f.router.AddConsumerHandler("forward", f.cfg.Topic, f.subscriber, to.deliver).
		AddMiddleware(f.tell, poison, whileItLasts, retry.Middleware, inbox)
	f.admin.Check("router", func(context.Context) error {
		if !f.router.IsRunning() {
			return errors.New("the router does not run")
		}
		return nil
	})
	return nil
}

// whileItLasts returns the stop instead of the last failure, which would send the event to the dead topic.
func whileItLasts(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		produced, err := next(msg)
		if err != nil && msg.Context().Err() != nil {
			err = context.Cause(msg.Context())
		}
		return produced, err
	}
}

// PoisonQueue writes the reason into the message's metadata.
func (f *forwarder) tell(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		produced, err := next(msg)
		if reason := msg.Metadata.Get(middleware.ReasonForPoisonedKey); reason != "" {
			f.log.Error("event given up", "event_id", eventID(msg), "topic", f.cfg.DeadTopic, "error", reason)
		}
		return produced, err
	}
}

func (f *forwarder) quietly() watermill.LoggerAdapter {
	return watermill.NewSlogLoggerWithLevelMapping(f.log, map[slog.Level]slog.Level{slog.LevelInfo: slog.LevelDebug})
}

func (f *forwarder) close() error {
	var errs []error
	if f.subscriber != nil {
		errs = append(errs, f.subscriber.Close())
	}
	if f.dead != nil {
		errs = append(errs, f.dead.Close())
	}
	if f.nats != nil {
		f.nats.Close()
	}
	return errors.Join(errs...)
}
