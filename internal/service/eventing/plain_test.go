package eventing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
)

func TestConsumersOfOneTopicEachHandleEveryEvent(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "KAFKA_TOPIC_PARTITIONS=1", "INBOX_RETRY_MIN=1ms")
	execute(t, p.pool, `create table seen (n bigserial, by text, event_id text)`)
	note := func(ctx context.Context, by string) error {
		tx, inTx := inbox.TxFromContext(ctx)
		e, isEvent := inbox.EventFromContext(ctx)
		if !inTx || !isEvent {
			return errors.New("no transaction")
		}
		_, err := tx.Exec(ctx, `insert into seen (by, event_id) values ($1, $2)`, by, e.ID)
		return err
	}
	attempts := 0
	around := func(name string) message.HandlerMiddleware {
		return func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				if err := note(msg.Context(), name); err != nil {
					return nil, err
				}
				return next(msg)
			}
		}
	}
	outcomes := make(chan string, 6)
	b := open(t, p.cfg)
	for _, c := range []eventing.Consumer{
		{
			Name: "test.typed", Handlers: pings(func(ctx context.Context, _ pgx.Tx, _ event.Event, _ pinged) error {
				return note(ctx, "test.typed")
			}),
		},
		{
			Name: "test.plain", Types: []string{"test.pinged.v1"}, Order: inbox.Strict,
			Handler: func(msg *message.Message) error {
				if attempts++; attempts == 1 {
					return errors.Join(note(msg.Context(), "rolled back"), errors.New("the first attempt fails"))
				}
				return note(msg.Context(), "test.plain")
			},
			Middlewares: []message.HandlerMiddleware{around("1: outer"), around("2: inner")},
		},
		{
			Name: "test.cqrs", Types: []string{"test.pinged.v1"},
			Handler: processor(t, func(ctx context.Context, data *pinged) error {
				return note(ctx, fmt.Sprintf("test.cqrs of %d", data.N))
			}),
		},
		{
			Name: "test.other", Types: []string{"test.other.v1"},
			Handler: func(*message.Message) error { return errors.New("not for it") },
		},
	} {
		c.Topic = p.topic
		c.OnOutcome = func(_ event.Event, o inbox.Outcome) { outcomes <- c.Name + " " + string(o) }
		b.consume(t, c)
	}
	b.serve(t)
	sendRaw(t, p.brokers, pingRecord(t, p.topic, 1))
	var got []string
	for range 4 {
		got = append(got, <-outcomes)
	}
	require.ElementsMatch(t, []string{
		"test.typed applied", "test.plain applied", "test.cqrs applied", "test.other ignored",
	}, got)
	rows, err := p.pool.Query(t.Context(), `select by from seen where event_id = 'a/1' order by n`)
	require.NoError(t, err)
	seen, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"test.cqrs of 1", "1: outer", "2: inner", "test.plain", "test.typed"}, seen)
	outer := slices.Index(seen, "1: outer")
	require.Less(t, outer, slices.Index(seen, "2: inner"))
	require.Less(t, slices.Index(seen, "2: inner"), slices.Index(seen, "test.plain"))
}

func processor(t *testing.T, handle func(context.Context, *pinged) error) message.NoPublishHandlerFunc {
	t.Helper()
	router := message.NewDefaultRouter(watermill.NopLogger{})
	processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) {
			return "unused", nil
		},
		SubscriberConstructor: func(cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return gochannel.NewGoChannel(gochannel.Config{}, nil), nil
		},
		Marshaler: byType{cqrs.JSONMarshaler{GenerateName: func(any) string { return "test.pinged.v1" }}},
	})
	require.NoError(t, err)
	require.NoError(t, processor.AddHandlers(cqrs.NewEventHandler("pings", handle)))
	registered := router.Handlers()["pings"]
	return func(msg *message.Message) error {
		_, err := registered(msg)
		return err
	}
}

type byType struct{ cqrs.JSONMarshaler }

func (byType) NameFromMessage(msg *message.Message) string {
	return msg.Metadata[event.HeaderType]
}

func TestAConsumerHasHandlersOrAHandler(t *testing.T) {
	t.Parallel()
	cfg := environ(t, "postgres://nobody@127.0.0.1:1/none", "127.0.0.1:1")
	plain := func(*message.Message) error { return nil }
	b := open(t, cfg)
	defer func() { require.NoError(t, b.node.Close()) }()
	for name, consumer := range map[string]eventing.Consumer{
		"neither":                 {},
		"both":                    {Handlers: inbox.NewMux(), Handler: plain, Types: []string{"a"}},
		"a Handler without Types": {Handler: plain},
		"Handlers with Types":     {Handlers: inbox.NewMux(), Types: []string{"a"}},
	} {
		consumer.Name, consumer.Topic = "c", "t"
		require.EqualError(t, b.node.Consume(consumer),
			"open consumer c: want either Handlers, or a Handler and its Types", name)
	}
	named := eventing.Consumer{Name: "c", Topic: "t", Handler: plain, Types: []string{"a"}}
	require.NoError(t, b.node.Consume(named))
	require.EqualError(t, b.node.Consume(named), "open consumer c: another consumer of the service has this name")
	nameless := eventing.Consumer{Topic: "t", Handlers: inbox.NewMux()}
	require.ErrorContains(t, b.node.Consume(nameless), "a consumer and a pool are required")
}

func TestAConsumerIsComparedWithTheContract(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	node, err := eventing.Open(t.Context(), eventing.Setup{
		Service: "test", Config: environ(t, "postgres://nobody@127.0.0.1:1/none", "127.0.0.1:1"), Log: log,
		Admin:    service.NewAdmin(service.AdminConfig{Log: log}),
		Declared: []event.Declaration{{Type: "test.pinged.v1", Topic: "pings"}, {Type: "test.other.v1", Topic: "others"}},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close()) }()
	require.EqualError(t, node.Consume(eventing.Consumer{
		Name: "test.plain", Topic: "pings", Types: []string{"test.pinged.v1", "test.other.v1", "test.pinged.v2"},
		Handler: func(*message.Message) error { return nil },
	}), "open consumer test.plain: it reads pings and handles test.other.v1, which is on others\n"+
		"it handles test.pinged.v2, and the contract has no such event")
}
