package relay_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/test/outboxtest"
)

// takesAll gives a broker that takes everything.
func takesAll() outboxtest.ContextLedger {
	return outboxtest.ContextLedger{Ledger: outboxtest.NewLedger()}
}

func TestRepublishSendsOnlyWhatWasPublished(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	old := outboxtest.Event("a")
	old.Time = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	added := outboxtest.Commit(t, o, pool, old, outboxtest.Event("b"), outboxtest.Event("a"))
	slow := outboxtest.Begin(t, pool)
	outboxtest.Add(t, o, slow, "slow") // position 4
	outboxtest.Commit(t, o, pool, outboxtest.Event("c"))
	outboxtest.MarkPublished(t, pool)                                                                  // 1, 2, 3 and 5
	outboxtest.Commit(t, o, pool, outboxtest.Event("a"), outboxtest.Event("b"), outboxtest.Event("c")) // 6 to 8
	require.NoError(t, slow.Commit(t.Context()))
	outboxtest.MarkPublishedTo(t, pool, 6) // 4 and 6 are out, 7 and 8 are not
	_, err := pool.Exec(t.Context(), `insert into outbox_held values ($1, 'b', 2)`, outboxtest.Topic)
	require.NoError(t, err)

	for _, c := range []struct {
		name string
		relay.Selection
		want []int64
	}{
		{"all", relay.Selection{From: 1}, []int64{1, 3, 4, 5, 6}},
		{"from", relay.Selection{From: 4}, []int64{4, 5, 6}},
		{"range", relay.Selection{From: 2, To: 5}, []int64{3, 4, 5}},
		{"until", relay.Selection{Until: old.Time.Add(time.Hour)}, []int64{1}},
		{"since", relay.Selection{Since: old.Time.Add(time.Hour)}, []int64{3, 4, 5, 6}},
		{"ids", relay.Selection{IDs: []string{added[2].ID, added[0].ID, added[1].ID}}, []int64{1, 3}},
		{"no ids", relay.Selection{IDs: []string{}}, nil},
		{"key", relay.Selection{Key: "a", Topic: outboxtest.Topic}, []int64{1, 3, 6}},
		{"another topic", relay.Selection{Topic: "other"}, nil},
	} {
		l := takesAll()
		n, err := relay.Republish(t.Context(), pool, l, c.Selection)
		require.NoError(t, err, c.name)
		require.Equal(t, len(c.want), n, c.name)
		var got []int64
		wire, _ := l.Snapshot()
		for _, e := range wire {
			got = append(got, outboxtest.Number(t, pool, `select position from outbox where event_id = $1`, e.ID))
		}
		require.Equal(t, c.want, got, c.name)
	}
}

// Copies of dead letters stand between the events, under their keys. They go again only if they are asked for.
func TestRepublishLeavesCopiesOfDeadLetters(t *testing.T) {
	t.Parallel()
	o, pool := outboxtest.New(t), outboxtest.Database(t)
	const copies = "dlq.group.topic"
	copied := outboxtest.Event("k")
	copied.Topic = copies
	event := outboxtest.Event("k")
	id := outboxtest.Commit(t, o, pool, event, event, event, copied)[3].ID
	outboxtest.MarkPublished(t, pool)

	for _, c := range []struct {
		name string
		relay.Selection
		events, copies int
	}{
		{"by position", relay.Selection{From: 1}, 3, 0},
		{"by time", relay.Selection{Since: time.Now().Add(-time.Hour)}, 3, 0},
		{"by key", relay.Selection{Key: "k"}, 3, 0},
		{"the events' topic", relay.Selection{From: 1, Topic: outboxtest.Topic}, 3, 0},
		{"the copies' topic", relay.Selection{From: 1, Topic: copies}, 0, 1},
		{"the copy's id", relay.Selection{IDs: []string{id}}, 0, 1},
	} {
		sent := map[string]int{}
		l := takesAll()
		l.Follow(func(_ int, topic string, msgs []*message.Message) error {
			sent[topic] += len(msgs)
			return nil
		})
		n, err := relay.Republish(t.Context(), pool, l, c.Selection)
		require.NoError(t, err, c.name)
		require.Equal(t, c.events+c.copies, n, c.name)
		require.Equal(t, []int{c.events, c.copies}, []int{sent[outboxtest.Topic], sent[copies]}, c.name)
	}
}

func TestRepublishErrors(t *testing.T) {
	t.Parallel()
	o, pool, l := outboxtest.New(t), outboxtest.Database(t), takesAll()
	_, err := relay.Republish(t.Context(), pool, l, relay.Selection{})
	require.ErrorIs(t, err, relay.ErrEmptySelection)
	outboxtest.CommitMany(t, o, pool, 5, 2)
	outboxtest.MarkPublished(t, pool)
	down := errors.New("no broker")
	l.Follow(func(int, string, []*message.Message) error { return down })
	n, err := relay.Republish(t.Context(), pool, l, relay.Selection{From: 1})
	require.ErrorIs(t, err, down)
	require.Zero(t, n)
}
