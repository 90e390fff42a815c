package outbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

func testMessage(key string) *message.Message {
	return event.Event{
		ID: uuid.NewString(), Source: "/test", Type: "t.v1", Key: key,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: []byte(`{}`),
		Extensions: map[string]string{"traceparent": "00-1"},
	}.Message()
}

func TestPublisherAddsToTheTransaction(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	m := testMessage("k")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		p, err := o.Publisher(t.Context(), tx)
		require.NoError(t, err)
		require.NoError(t, p.Publish(testTopic, m, testMessage("l"), testMessage("k")))
		return p.Close()
	})
	require.NoError(t, err)
	require.Equal(t, int64(3), number(t, pool, `select count(*) from outbox`))
	require.Equal(t, int64(1), number(t, pool, `select version from outbox where event_id = $1 and key = 'k'
		and headers = '{"traceparent": "00-1"}' and occurred_at = '2026-01-02 03:04:05+00'`, m.UUID))
	require.Equal(t, int64(2), number(t, pool, `select max(version) from outbox where key = 'k'`))
}

// watermill-sql inserts under context.Background; the caller's deadline must apply.
func TestPublisherCarriesTheContext(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	holder, waiter := begin(t, pool), begin(t, pool)
	_, err := o.Add(t.Context(), holder, newEvent("k"))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	p, err := o.Publisher(ctx, waiter)
	require.NoError(t, err)
	result := make(chan error)
	go func() { result <- p.Publish(testTopic, testMessage("k")) }()
	awaitLockWait(t, pool, waiter)
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
}

func TestPublisherRefuses(t *testing.T) {
	t.Parallel()
	o := newOutbox(t)
	for _, c := range []struct {
		code   string
		change func(*message.Message)
	}{
		{CodeInvalidEvent, func(m *message.Message) { m.UUID = "a\nb" }},
		{CodeInvalidEvent, func(m *message.Message) { m.Metadata[event.HeaderSubject] = "other" }},
		{CodeInvalidEvent, func(m *message.Message) { m.Metadata[event.HeaderTime] = "yesterday" }},
		{CodeInvalidEvent, func(m *message.Message) { m.Metadata[event.HeaderVersion] = "one" }},
		{CodeTooLarge, func(m *message.Message) { m.Payload = []byte(strings.Repeat("x", 1_000_000)) }},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			p, err := o.Publisher(t.Context(), nil)
			require.NoError(t, err)
			bad := testMessage("k")
			c.change(bad)
			var refused *EventError
			require.ErrorAs(t, p.Publish(testTopic, testMessage("k"), bad), &refused)
			require.Equal(t, c.code, refused.Code)
			require.Equal(t, 1, refused.Index)
		})
	}
}

func plain(id string) *message.Message { return message.NewMessage(id, []byte(`{"n":1}`)) }

func TestPublisherTakesPlainMessages(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	o, err := New(Config{})
	require.NoError(t, err)
	named := plain(watermill.NewUUID())
	named.Metadata["name"] = "orders.OrderPlaced" // as the marshalers of cqrs write it
	ours, loud := testMessage("k"), plain(strings.ToUpper(uuid.NewString()))
	ids := []string{watermill.NewUUID(), watermill.NewShortUUID(), watermill.NewULID(), "order 7, placed", ""}
	for range 2 {
		messages := []*message.Message{named.Copy(), ours.Copy(), loud.Copy()}
		for _, id := range ids {
			messages = append(messages, plain(id))
		}
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			p, err := o.Publisher(t.Context(), tx)
			require.NoError(t, err)
			return p.Publish(testTopic, messages...)
		}))
	}
	require.EqualValues(t, 3+4+2, number(t, pool, `select count(*) from outbox`), "an id that is empty is none")
	require.EqualValues(t, 1, number(t, pool, `select count(*) from outbox
		where event_id = $1 and event_type = 'orders.OrderPlaced' and key = event_id::text and version = 1
		and source = '/' || topic and headers = '{"name": "orders.OrderPlaced"}'`, named.UUID))
	require.EqualValues(t, 1, number(t, pool, `select count(*) from outbox where event_id = $1 and event_type = 't.v1'`,
		ours.UUID))
	require.EqualValues(t, 1, number(t, pool, `select count(*) from outbox
		where event_id = $1::text::uuid and headers = jsonb_build_object('ce_messageid', $1::text)`, loud.UUID))
	for _, id := range ids[1:4] {
		require.EqualValues(t, 1, number(t, pool, `select count(*) from outbox
			where event_type = topic and headers = jsonb_build_object('ce_messageid', $1::text)`, id))
	}
}
