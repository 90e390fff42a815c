package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/replay"
)

// clinic is a consumer whose handler fails for the values in sick, until they are healed.
type clinic struct {
	*bundle
	in    *inbox.Inbox
	next  message.HandlerFunc
	again replay.Config // without a Handler nothing is taken up
	taker *replay.Replayer
	batch int
	at    int64
	sick  atomic.Pointer[map[string]error]

	mu   sync.Mutex // a delivery and a replay may end at the same time
	seen []inbox.Outcome
}

var errSick = errors.New("no idea")

func newClinic(t *testing.T, batch int, configure func(*inbox.Config)) *clinic {
	t.Helper()
	c := &clinic{bundle: setup(t), batch: batch}
	c.heal()
	mux := inbox.NewMux()
	inbox.Handle(mux, testEvent, func(ctx context.Context, tx pgx.Tx, e cloudevent.Event, d testData) error {
		if err := (*c.sick.Load())[d.Value]; err != nil {
			return err
		}
		return effect(ctx, tx, e, d)
	})
	c.next = mux.HandleMessage
	c.again.Handler, c.again.ResumeEvery = mux.HandleMessage, pollEvery
	c.Config.Versioned, c.Config.MaxAttempts, c.Config.Batch = true, 1, max(batch, 1)
	c.Host.OnOutcome = func(_ cloudevent.Event, o inbox.Outcome) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen = append(c.seen, o)
	}
	if configure != nil {
		configure(&c.Config)
	}
	c.open(t)
	return c
}

// open makes an inbox and, with a handler for that, what takes up dead letters.
func (c *clinic) open(t *testing.T) {
	t.Helper()
	c.in = c.Inbox(t)
	if c.again.Handler != nil {
		c.again.Inbox = c.in
		taker, err := replay.New(c.again)
		require.NoError(t, err)
		c.taker = taker
	}
}

// newReplayer takes up the dead letters of an inbox.
func newReplayer(t *testing.T, in *inbox.Inbox, handler message.HandlerFunc) *replay.Replayer {
	t.Helper()
	r, err := replay.New(replay.Config{Inbox: in, Handler: handler, MaxReplays: 1000})
	require.NoError(t, err)
	return r
}

// fall makes the handler fail for events with these values; heal makes it work for all.
func (c *clinic) fall(values ...string) {
	sick := make(map[string]error)
	for _, v := range values {
		sick[v] = errSick
	}
	c.sick.Store(&sick)
}

func (c *clinic) heal() { c.fall() }

// whole is the event as a broker's record, with all its headers.
func whole(t *testing.T, e cloudevent.Event, offset int64) *message.Message {
	t.Helper()
	m := e.Message()
	m.SetContext(cloudevent.WithOrigin(t.Context(), cloudevent.Origin{
		Group: "local.test", Topic: "topic-1", Offset: offset, Time: e.Time, Key: []byte(e.Key),
		Headers: cloudevent.MessageHeaders(m),
	}))
	return m
}

// deliver hands the events over as records of one partition and returns their outcomes.
func (c *clinic) deliver(t *testing.T, events ...cloudevent.Event) []inbox.Outcome {
	t.Helper()
	msgs := make([]*message.Message, len(events))
	for i, e := range events {
		msgs[i] = whole(t, e, c.at)
		c.at++
	}
	c.seen = nil
	_, err := c.in.BatchMiddleware(c.next)(t.Context(), msgs)
	require.NoError(t, err)
	return c.seen
}

// sick is an event that the handler fails for after fall(value).
func sick(key string, version int64, value string) cloudevent.Event {
	return payload(v(key, version), fmt.Sprintf(`{"value":%q}`, value))
}

func ids(events ...cloudevent.Event) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = e.ID
	}
	return list
}

func (c *clinic) requireEffects(t *testing.T, events ...cloudevent.Event) {
	t.Helper()
	require.Equal(t, ids(events...), c.List(t, `select event_id from ledger order by n`))
}
