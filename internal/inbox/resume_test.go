package inbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/test/testkit"
)

// rounds runs the inbox's rounds until the condition holds.
func (c *clinic) rounds(t *testing.T, until func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.taker.ResumeGaps(ctx) }()
	testkit.Until(t, until)
	stop()
	require.NoError(t, <-ended)
}

// lines is what an inbox logs.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.Bytes(), []byte(text))
}

// A parked event at which a process ended may end the next one: were another event under way then, that one would be
// suspected, and given up in the end.
func TestWhatMayEndAProcessIsResumedAlone(t *testing.T) {
	t.Parallel()
	log := &lines{}
	c := newClinic(t, 1, func(cfg *inbox.Config) {
		cfg.MaxAttempts = 3
		cfg.RetryMin, cfg.RetryMax = pollEvery, pollEvery
		cfg.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	handler := c.again.Handler
	c.again.Handler = nil // its process ended before it could take up anything
	c.open(t)
	come := []cloudevent.Event{v("a", 1), v("a", 3), v("a", 2), v("b", 1)}
	c.deliver(t, come[:3]...)
	c.Exec(t, `update dead_letter set attempts = 2`)
	c.again.Handler = handler
	c.open(t)

	atWork, release := make(chan struct{}), make(chan struct{})
	next := c.next
	c.next = func(m *message.Message) ([]*message.Message, error) {
		close(atWork)
		<-release
		return next(m)
	}
	delivered := make(chan error, 1)
	msgs := []*message.Message{whole(t, come[3], c.at)}
	go func() {
		_, err := c.in.BatchMiddleware(c.next)(t.Context(), msgs)
		delivered <- err
	}()
	<-atWork
	c.rounds(t, func() bool {
		if log.contains("other events are under way in the process") && len(delivered) == 0 {
			select {
			case <-release:
			default:
				c.requireEffects(t, come[0], come[2])
				close(release)
			}
		}
		return c.Count(t, `select count(*) from dead_letter where state = 'waiting'`) == 0
	})
	require.NoError(t, <-delivered)
	c.requireEffects(t, come[0], come[2], come[3], come[1])
	require.Equal(t, 3, c.Count(t, `select attempts from dead_letter`), "attempts that did not begin do not count")
}

// A key with very many parked events does not stop its partition: the rounds take up what is left.
func TestAPartitionWaitsOnlySoLongForAKey(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	handler := c.again.Handler
	slow := sick("a", 3, "slow")
	c.again.Handler = func(m *message.Message) ([]*message.Message, error) {
		if m.UUID == slow.ID {
			c.Exec(t, `select pg_sleep(1.1)`)
		}
		return handler(m)
	}
	c.open(t)
	come := []cloudevent.Event{v("a", 1), slow, v("a", 4), v("a", 2), v("a", 5)}
	c.deliver(t, come[:4]...)
	require.Equal(t, []inbox.Outcome{inbox.Parked}, c.deliver(t, come[4]), "it keeps its place behind what is left")
	c.requireEffects(t, come[0], come[3], come[1])
	c.rounds(t, func() bool { return c.Count(t, `select count(*) from dead_letter where state = 'waiting'`) == 0 })
	c.requireEffects(t, come[0], come[3], come[1], come[2], come[4])
}

// A key whose surroundings fail does not keep the rounds from the keys behind it.
func TestAKeyThatCannotGoOnKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	c := newClinic(t, 200, nil)
	handler := c.again.Handler
	c.again.Handler = nil
	c.open(t)
	come := []cloudevent.Event{v("a", 1), sick("a", 3, "down"), v("a", 2), v("b", 1), v("b", 3), v("b", 2)}
	c.deliver(t, come...)
	c.sick.Store(&map[string]error{"down": failure.AsTransient(errSick)})
	c.again.Handler = handler
	c.open(t)
	c.rounds(t, func() bool { return c.Count(t, `select count(*) from dead_letter where state = 'waiting'`) == 1 })
	c.requireEffects(t, come[0], come[2], come[3], come[5], come[4])
	require.Equal(t, []string{"version_gap 3"}, c.List(t,
		`select code || ' ' || version from dead_letter where state = 'waiting'`))
}
