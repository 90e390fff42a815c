package outbox

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/cloudevent"
)

// entry is one record on the wire.
type entry struct {
	topic, key, id string
	version        int64
}

func entryOf(topic string, m *message.Message) entry {
	version, err := strconv.ParseInt(m.Metadata[cloudevent.HeaderVersion], 10, 64)
	if err != nil {
		panic(err)
	}
	return entry{topic: topic, key: m.Metadata[cloudevent.KeyMetadata], id: m.UUID, version: version}
}

// ledger is a broker that writes down what it takes, and fails as scripted.
type ledger struct {
	mu     sync.Mutex
	wire   []entry
	calls  int
	script func(call int, topic string, msgs []*message.Message) error // nil error: takes all
	after  bool                                                        // takes them even if the script fails

	changed chan struct{} // closed and replaced whenever something was taken or refused
}

func newLedger() *ledger { return &ledger{changed: make(chan struct{})} }

// partialError is what our Kafka publisher's error looks like from here.
type partialError struct{ failed map[int]error }

func (e *partialError) Error() string                { return fmt.Sprintf("%d records failed", len(e.failed)) }
func (e *partialError) FailedIndexes() map[int]error { return e.failed }

var errHeldBack = errors.New("an earlier record of the key failed")

// holdBack does what a publisher owes its caller: what follows a key's failure is not taken.
func (e *partialError) holdBack(msgs []*message.Message) {
	stopped := map[string]bool{}
	for i, m := range msgs {
		key := m.Metadata[cloudevent.KeyMetadata]
		if e.failed[i] == nil && stopped[key] {
			e.failed[i] = errHeldBack
		}
		stopped[key] = e.failed[i] != nil
	}
}

type permanentError struct{ reason string }

func (e *permanentError) Error() string { return e.reason }
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
		failed.holdBack(msgs)
	}
	for i, m := range msgs {
		if err == nil || l.after || partial && failed.failed[i] == nil {
			l.wire = append(l.wire, entryOf(topic, m))
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return err
}

// take writes records down outside of a call's result.
func (l *ledger) take(topic string, msgs []*message.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range msgs {
		l.wire = append(l.wire, entryOf(topic, m))
	}
}

func (l *ledger) Close() error { return nil }

func (l *ledger) follow(script func(call int, topic string, msgs []*message.Message) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.script = script
}

func (l *ledger) snapshot() ([]entry, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]entry(nil), l.wire...), l.changed
}

func (l *ledger) callCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// await returns when the wire fulfils a condition.
func (l *ledger) await(t testing.TB, what string, is func(wire []entry) bool) []entry {
	t.Helper()
	ctx := deadline(t)
	for {
		wire, changed := l.snapshot()
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

// distinct is the number of different events.
func distinct(wire []entry) int {
	ids := map[string]bool{}
	for _, e := range wire {
		ids[e.id] = true
	}
	return len(ids)
}

func (l *ledger) awaitDistinct(t testing.TB, n int) []entry {
	t.Helper()
	return l.await(t, fmt.Sprintf("%d events", n), func(wire []entry) bool { return distinct(wire) >= n })
}

// requireOrder is I5: per key, first occurrences are 1, 2, 3 ...
func requireOrder(t testing.TB, wire []entry) {
	t.Helper()
	seen := map[string]bool{}
	next := map[keyName]int64{}
	for i, e := range wire {
		if seen[e.id] {
			continue
		}
		seen[e.id] = true
		name := keyName{e.topic, e.key}
		next[name]++
		require.Equal(t, next[name], e.version, "first occurrence of an event of %v, record %d", name, i)
	}
}

// requireAll is I2, I3 and I5: what is on the wire is what was committed, in order.
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
		require.True(t, committed[e.id], "published, but not committed: %v", e)
		published[e.id] = true
	}
	require.Len(t, published, len(committed), "events are lost")
}
