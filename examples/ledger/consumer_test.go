package ledger

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/ledger/account"
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
)

// consumer is the service's own, without its broker.
type consumer struct {
	in      *inbox.Inbox
	next    message.HandlerFunc
	replays *inbox.Replayer
	offset  int64

	mu   sync.Mutex // a delivery and the events it resumes may end at the same time
	seen []inbox.Outcome
}

type host struct {
	inbox.Standalone
	consumer *consumer
}

func (h host) Handled(_ event.Event, outcome inbox.Outcome) {
	h.consumer.mu.Lock()
	defer h.consumer.mu.Unlock()
	h.consumer.seen = append(h.consumer.seen, outcome)
}

// newConsumer retries without pauses.
func newConsumer(t require.TestingT, pool *pgxpool.Pool) *consumer {
	events, err := contract.Load()
	require.NoError(t, err)
	shipped := balances()
	c := &consumer{next: shipped.Handlers.HandleMessage}
	c.in, err = inbox.New(inbox.Config{
		Consumer: shipped.Name, Pool: pool, Accepts: shipped.Accepts, Validate: events.Validate, Order: shipped.Order,
		HandlerTimeout: time.Minute, RetryMin: time.Millisecond, RetryMax: 2 * time.Millisecond,
		Host: host{consumer: c}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	c.replays = inbox.NewReplayer(c.in, c.next)
	return c
}

func (c *consumer) deliver(t require.TestingT, events ...event.Event) []inbox.Outcome {
	c.seen = nil
	_, err := c.deliverAt(background, c.offset, events...)
	require.NoError(t, err)
	c.offset += int64(len(events))
	return c.seen
}

// deliverAt returns how many of the records need not come again.
func (c *consumer) deliverAt(ctx context.Context, offset int64, events ...event.Event) (int, error) {
	msgs := make([]*message.Message, len(events))
	for i, e := range events {
		msgs[i] = e.Message()
		msgs[i].SetContext(event.WithOrigin(ctx, event.Origin{
			Group: "test", Topic: contract.TopicAccounts, Offset: offset + int64(i), Time: e.Time, Key: []byte(e.Key),
			Headers: event.MessageHeaders(msgs[i]),
		}))
	}
	return c.in.BatchMiddleware(c.next)(ctx, msgs)
}

func (c *consumer) resume(t require.TestingT) {
	require.NoError(t, c.replays.ResumeRound(background))
}

// replay also resumes the events that were parked behind the dead letters.
func (c *consumer) replay(t require.TestingT) {
	err := c.replays.Replay(background, deadletter.Filter{}, inbox.Options{
		Change: audit.Change{By: "ana", Reason: "mended"},
	})
	require.NoError(t, err)
	c.resume(t)
}

func (b *bundle) requireRead(t require.TestingT, id account.ID, balance, version int64) {
	read, err := readBalance(background, b.pool, id)
	require.NoError(t, err)
	require.Equal(t, balance, read.Balance)
	require.Equal(t, version, read.Version)
	require.Zero(t, b.count(t, `select count(*) from dead_letter where state = 'waiting'`))
}

// twin is the same event under another id.
func twin(e event.Event) event.Event {
	e.ID = uuid.Must(uuid.NewV7()).String()
	return e
}
