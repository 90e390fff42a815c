package outbox

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
)

func testMessage(key string) *message.Message {
	return cloudevent.Event{
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

func TestPublisherReportsAConflict(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	tx := begin(t, pool)
	p, err := o.Publisher(t.Context(), tx)
	require.NoError(t, err)
	second, third := testMessage("k"), testMessage("l")
	second.Metadata[cloudevent.HeaderVersion] = "2"
	require.ErrorIs(t, p.Publish(testTopic, third, second), ErrVersionConflict)
	require.NoError(t, tx.Commit(t.Context()))
	require.Zero(t, number(t, pool, `select count(*) from outbox`))
}

// watermill-sql inserts under context.Background; the caller's deadline must hold all the same.
func TestPublisherCarriesTheContext(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	holder, waiter := begin(t, pool), begin(t, pool)
	_, err := o.Add(t.Context(), holder, event("k"))
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
		code   Code
		change func(*message.Message)
	}{
		{CodeInvalidID, func(m *message.Message) { m.UUID = "" }},
		{CodeInvalidKey, func(m *message.Message) { m.Metadata[cloudevent.HeaderSubject] = "other" }},
		{CodeInvalidTime, func(m *message.Message) { m.Metadata[cloudevent.HeaderTime] = "yesterday" }},
		{CodeInvalidVersion, func(m *message.Message) { m.Metadata[cloudevent.HeaderVersion] = "one" }},
		{CodeMissingKey, func(m *message.Message) {
			delete(m.Metadata, cloudevent.KeyMetadata)
			delete(m.Metadata, cloudevent.HeaderSubject)
		}},
		{CodeTooLarge, func(m *message.Message) { m.Payload = []byte(strings.Repeat("x", 1_000_000)) }},
	} {
		t.Run(string(c.code), func(t *testing.T) {
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
