package eventing_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/pgtest"
)

func TestMiddlewaresRunAroundEachEvent(t *testing.T) {
	t.Parallel()
	pool, brokers := pgtest.New(t, sets...), kafkatest.Brokers(t)
	cfg := environ(t, pgtest.DSN(pool), brokers[0], "KAFKA_TOPIC_PARTITIONS=1", "INBOX_RETRY_MIN=1ms")
	topic := kafkatest.Group(t)
	ensureTopic(t, cfg, topic)
	execute(t, pool, `create table seen (id bigint generated always as identity, by text)`)
	attempts := 0
	notes := func(name string) message.HandlerMiddleware {
		return func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				tx, inTx := inbox.TxFromContext(msg.Context())
				e, isEvent := inbox.EventFromContext(msg.Context())
				if !inTx || !isEvent || e.ID != msg.UUID {
					return nil, errors.New("not in the event's transaction")
				}
				if _, err := tx.Exec(msg.Context(), `insert into seen (by) values ($1)`, name); err != nil {
					return nil, err
				}
				produced, err := next(msg)
				if attempts++; err == nil && attempts == 1 {
					err = errors.New("the first attempt, after its handler")
				}
				return produced, err
			}
		}
	}
	outcomes := make(chan inbox.Outcome, 1)
	b := open(t, cfg)
	b.consume(t, eventing.Consumer{
		Name: "test.middlewares", Topic: topic,
		Handlers: pings(func(ctx context.Context, tx pgx.Tx, _ event.Event, _ pinged) error {
			_, err := tx.Exec(ctx, `insert into seen (by) values ('handler')`)
			return err
		}),
		Middlewares: []message.HandlerMiddleware{notes("outer"), notes("inner")},
		OnOutcome:   func(_ event.Event, o inbox.Outcome) { outcomes <- o },
	})
	b.serve(t)
	sendRaw(t, brokers, pingRecord(t, topic, 1))
	require.Equal(t, inbox.Applied, <-outcomes)

	rows, err := pool.Query(t.Context(), `select by from seen order by id`)
	require.NoError(t, err)
	seen, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"outer", "inner", "handler"}, seen, "once: the first attempt was rolled back")
	require.Equal(t, 4, attempts)
}
