package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
)

type entry struct {
	Topic, Key, ID string
	Version        int64
}

func entryOf(topic string, m *message.Message) entry {
	version, err := strconv.ParseInt(m.Metadata[event.HeaderVersion], 10, 64)
	if err != nil {
		panic(err)
	}
	return entry{Topic: topic, Key: m.Metadata[event.KeyMetadata], ID: m.UUID, Version: version}
}

type ledger struct {
	mu     sync.Mutex
	wire   []entry
	calls  int
	script func(call int, topic string, msgs []*message.Message) error // nil error: takes all
	After  bool                                                        // takes them even if the script fails

	changed chan struct{}
}

func newLedger() *ledger { return &ledger{changed: make(chan struct{})} }

type partialError struct{ Failed map[int]error }

func (e *partialError) Error() string                { return fmt.Sprintf("%d records failed", len(e.Failed)) }
func (e *partialError) FailedIndexes() map[int]error { return e.Failed }

var errHeldBack = errors.New("an earlier record of the key failed")

// HoldBack refuses a key's records after its first failure, as publishers promise.
func (e *partialError) HoldBack(msgs []*message.Message) {
	stopped := map[string]bool{}
	for i, m := range msgs {
		key := m.Metadata[event.KeyMetadata]
		if e.Failed[i] == nil && stopped[key] {
			e.Failed[i] = errHeldBack
		}
		stopped[key] = e.Failed[i] != nil
	}
}

type permanentError struct{ Reason string }

func (e *permanentError) Error() string { return e.Reason }
func (*permanentError) Permanent() bool { return true }

func (l *ledger) Publish(topic string, msgs ...*message.Message) error {
	l.mu.Lock()
	l.calls++
	call, script := l.calls, l.script
	l.mu.Unlock()
	var err error
	if script != nil {
		err = script(call, topic, msgs) // may block
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	failed, partial := err.(*partialError) //nolint:errorlint // a script's own error, unwrapped
	if partial {
		failed.HoldBack(msgs)
	}
	for i, m := range msgs {
		if err == nil || l.After || partial && failed.Failed[i] == nil {
			l.wire = append(l.wire, entryOf(topic, m))
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
	if partial { // of one message, as the relay calls a publisher without a log
		return failed.Failed[0]
	}
	return err
}

func (l *ledger) Take(topic string, msgs []*message.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range msgs {
		l.wire = append(l.wire, entryOf(topic, m))
	}
}

func (l *ledger) Close() error { return nil }

func (l *ledger) Follow(script func(call int, topic string, msgs []*message.Message) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.script = script
}

func (l *ledger) Snapshot() ([]entry, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]entry(nil), l.wire...), l.changed
}

func (l *ledger) CallCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

func (l *ledger) Await(t testing.TB, what string, is func(wire []entry) bool) []entry {
	t.Helper()
	ctx := deadline(t)
	for {
		wire, changed := l.Snapshot()
		if is(wire) {
			return wire
		}
		select {
		case <-changed:
		case <-ctx.Done():
			require.FailNow(t, "waited in vain", "for %s, with %d records on the wire", what, len(wire))
		}
	}
}

func distinct(wire []entry) int {
	ids := map[string]bool{}
	for _, e := range wire {
		ids[e.ID] = true
	}
	return len(ids)
}

func (l *ledger) AwaitDistinct(t testing.TB, n int) []entry {
	t.Helper()
	return l.Await(t, fmt.Sprintf("%d events", n), func(wire []entry) bool { return distinct(wire) >= n })
}

// requireOrder is I5: per key, first occurrences are 1, 2, 3 ...
func requireOrder(t testing.TB, wire []entry) {
	t.Helper()
	seen := map[string]bool{}
	next := map[[2]string]int64{}
	for i, e := range wire {
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		name := [2]string{e.Topic, e.Key}
		next[name]++
		require.Equal(t, next[name], e.Version, "first occurrence of an event of %v, record %d", name, i)
	}
}

// requireAll is I2, I3 and I5: the wire has the committed events, in order.
func requireAll(t testing.TB, pool *pgxpool.Pool, wire []entry) {
	t.Helper()
	requireOrder(t, wire)
	rows, err := pool.Query(t.Context(), `select event_id::text from outbox`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	committed := map[string]bool{}
	for _, id := range ids {
		committed[id] = true
	}
	published := map[string]bool{}
	for _, e := range wire {
		require.True(t, committed[e.ID], "published, but not committed: %v", e)
		published[e.ID] = true
	}
	require.Len(t, published, len(committed), "events are lost")
}

type contextLedger struct{ *ledger }

func (l contextLedger) PublishContext(_ context.Context, topic string, msgs ...*message.Message) error {
	return l.Publish(topic, msgs...)
}
