package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx

	"example.com/twinbox/internal/event"
)

// stock is Watermill's documented outbox: the Forwarder's publisher around watermill-sql's inside the caller's
// transaction, and a Forwarder that reads with watermill-sql's subscriber and publishes with watermill-kafka's. Schema,
// offsets and the batch of 100 are defaults. It gets a better setting where a default is weaker or slower than ours:
//
//   - the writer's statement uses the same pgx connection as ours, not database/sql, which is slower;
//   - the Kafka producer waits for all replicas and is idempotent, with one request at a time, and sets a key;
//   - it logs nothing.
type stock struct {
	sqlDB *sql.DB
	poll  time.Duration // 0: watermill-sql's default of one second
}

const (
	stockQueue    = "events" // the Forwarder's topic: table watermill_events
	stockConsumer = "forwarder"
)

var stockSchema = wsql.DefaultPostgreSQLSchema{}

func newStock(db *database, poll time.Duration) (variant, error) {
	sqlDB, err := sql.Open("pgx", db.dsn)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	s := &stock{sqlDB: sqlDB, poll: poll}
	subscriber, err := s.subscriber()
	if err == nil {
		err = subscriber.SubscribeInitialize(stockQueue)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create stock tables: %w", err), s.close())
	}
	return s, nil
}

func (s *stock) subscriber() (*wsql.Subscriber, error) {
	return wsql.NewSubscriber(s.sqlDB, wsql.SubscriberConfig{
		ConsumerGroup:    stockConsumer,
		PollInterval:     s.poll,
		SchemaAdapter:    stockSchema,
		OffsetsAdapter:   wsql.DefaultPostgreSQLOffsetsAdapter{},
		InitializeSchema: true,
	}, watermill.NopLogger{})
}

func (*stock) write(ctx context.Context, tx pgx.Tx, events ...event.Event) error {
	inTx, err := wsql.NewPublisher(pgxExecutor{ctx: ctx, tx: tx},
		wsql.PublisherConfig{SchemaAdapter: stockSchema}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	msgs := make([]*message.Message, len(events))
	for i, e := range events {
		e.ID = uuid.Must(uuid.NewV7()).String()
		msgs[i] = e.Message()
	}
	enveloping := forwarder.NewPublisher(inTx, forwarder.PublisherConfig{ForwarderTopic: stockQueue})
	return enveloping.Publish(events[0].Topic, msgs...)
}

func (s *stock) relay(ctx context.Context, p message.Publisher) error {
	subscriber, err := s.subscriber()
	if err != nil {
		return err
	}
	fwd, err := forwarder.NewForwarder(subscriber, p, watermill.NopLogger{},
		forwarder.Config{ForwarderTopic: stockQueue, CloseTimeout: stopTimeout})
	if err != nil {
		return err
	}
	return runRouter(ctx, fwd.Run, fwd.Running(), fwd.Close)
}

func (*stock) publisher(brokers []string, events *arrivals[string]) (message.Publisher, error) {
	p, err := newStockPublisher(brokers)
	return stockPublisher{p, events}, err
}

func newStockPublisher(brokers []string) (message.Publisher, error) {
	cfg := wkafka.DefaultSaramaSyncPublisherConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Net.MaxOpenRequests = 1
	return wkafka.NewPublisher(wkafka.PublisherConfig{
		Brokers: brokers,
		Marshaler: wkafka.NewWithPartitioningMarshaler(func(_ string, msg *message.Message) (string, error) {
			return msg.Metadata.Get(event.KeyMetadata), nil
		}),
		OverwriteSaramaConfig: cfg,
	}, watermill.NopLogger{})
}

func (*stock) table() string { return "watermill_" + stockQueue }

func (s *stock) close() error { return s.sqlDB.Close() }

type stockPublisher struct {
	message.Publisher
	events *arrivals[string]
}

func (p stockPublisher) Publish(topic string, msgs ...*message.Message) error {
	err := p.Publisher.Publish(topic, msgs...)
	noteTaken(p.events, msgs, err)
	return err
}

type pgxExecutor struct {
	wsql.ContextExecutor                 // nil: the publisher calls ExecContext alone
	ctx                  context.Context // the publisher passes Background
	tx                   pgx.Tx
}

func (e pgxExecutor) ExecContext(_ context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := e.tx.Exec(e.ctx, query, args...)
	return rowCount(tag.RowsAffected()), err
}

type rowCount int64

func (r rowCount) RowsAffected() (int64, error) { return int64(r), nil }
func (rowCount) LastInsertId() (int64, error)   { return 0, errors.ErrUnsupported }
