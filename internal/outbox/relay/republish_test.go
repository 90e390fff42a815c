package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// markPublishedTo opens a window over all committed rows and marks those up to a position.
func markPublishedTo(t testing.TB, pool *pgxpool.Pool, position int64) {
	t.Helper()
	execSQL(t, pool, `update public.outbox_cursor set win = pg_current_snapshot(), win_pos = $1`,
		position)
}

func takesAll() contextLedger {
	return contextLedger{ledger: newLedger()}
}

func TestRepublishSendsOnlyWhatWasPublished(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	old := newEvent("a")
	old.Time = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	added := commit(t, o, pool, old, newEvent("b"), newEvent("a"))
	slow := begin(t, pool)
	addIn(t, o, slow, "slow") // position 4
	commit(t, o, pool, newEvent("c"))
	markPublished(t, pool)                                          // 1, 2, 3 and 5
	commit(t, o, pool, newEvent("a"), newEvent("b"), newEvent("c")) // 6 to 8
	require.NoError(t, slow.Commit(t.Context()))
	markPublishedTo(t, pool, 6) // 4 and 6 are out, 7 and 8 are not
	execSQL(t, pool, `insert into outbox_held values ($1, 'b', 2)`, testTopic)

	for _, c := range []struct {
		name string
		Selection
		want []int64
	}{
		{"all", Selection{From: 1}, []int64{1, 3, 4, 5, 6}},
		{"from", Selection{From: 4}, []int64{4, 5, 6}},
		{"range", Selection{From: 2, To: 5}, []int64{3, 4, 5}},
		{"until", Selection{Until: old.Time.Add(time.Hour)}, []int64{1}},
		{"since", Selection{Since: old.Time.Add(time.Hour)}, []int64{3, 4, 5, 6}},
		{"ids", Selection{IDs: []string{added[2].ID, added[0].ID, added[1].ID}}, []int64{1, 3}},
		{"no ids", Selection{IDs: []string{}}, nil},
		{"key", Selection{Key: "a", Topic: testTopic}, []int64{1, 3, 6}},
		{"another topic", Selection{Topic: "other"}, nil},
	} {
		l := takesAll()
		n, err := Republish(t.Context(), pool, l, c.Selection)
		require.NoError(t, err, c.name)
		require.Equal(t, len(c.want), n, c.name)
		var got []int64
		wire, _ := l.Snapshot()
		for _, e := range wire {
			got = append(got, number(t, pool, `select position from outbox where event_id = $1`, e.ID))
		}
		require.Equal(t, c.want, got, c.name)
	}
}

// Copies of dead letters lie between the events, under their keys.
func TestRepublishLeavesCopiesOfDeadLetters(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	const copies = "dlq.group.topic"
	copied := newEvent("k")
	copied.Topic = copies
	event := newEvent("k")
	id := commit(t, o, pool, event, event, event, copied)[3].ID
	markPublished(t, pool)

	for _, c := range []struct {
		name string
		Selection
		events, copies int
	}{
		{"by position", Selection{From: 1}, 3, 0},
		{"by time", Selection{Since: time.Now().Add(-time.Hour)}, 3, 0},
		{"by key", Selection{Key: "k"}, 3, 0},
		{"the events' topic", Selection{From: 1, Topic: testTopic}, 3, 0},
		{"the copies' topic", Selection{From: 1, Topic: copies}, 0, 1},
		{"the copy's id", Selection{IDs: []string{id}}, 0, 1},
	} {
		sent := map[string]int{}
		l := takesAll()
		l.Follow(func(_ int, topic string, msgs []*message.Message) error {
			sent[topic] += len(msgs)
			return nil
		})
		n, err := Republish(t.Context(), pool, l, c.Selection)
		require.NoError(t, err, c.name)
		require.Equal(t, c.events+c.copies, n, c.name)
		require.Equal(t, []int{c.events, c.copies}, []int{sent[testTopic], sent[copies]}, c.name)
	}
}

func TestRepublishErrors(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), takesAll()
	_, err := Republish(t.Context(), pool, l, Selection{})
	require.ErrorIs(t, err, ErrEmptySelection)
	addMany(t, o, pool, 5, 2)
	markPublished(t, pool)
	down := errors.New("no broker")
	l.Follow(func(int, string, []*message.Message) error { return down })
	n, err := Republish(t.Context(), pool, l, Selection{From: 1})
	require.ErrorIs(t, err, down)
	require.Zero(t, n)
}

func TestRepublishLeavesTimeToTheRelay(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), takesAll()
	addMany(t, o, pool, 3, 2)
	markPublished(t, pool)
	const took = 20 * time.Millisecond
	l.Follow(func(int, string, []*message.Message) error {
		sleep(t.Context(), took)
		return nil
	})
	began := time.Now()
	n, err := Republish(t.Context(), pool, l, Selection{From: 1})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.GreaterOrEqual(t, time.Since(began), 10*took)
}
