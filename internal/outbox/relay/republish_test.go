package operate

import (
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/outboxtest"
)

func TestRepublishSendsOnlyWhatWasPublished(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	old := event("a")
	old.Time = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	added := commit(t, o, pool, old, event("b"), event("a"))
	slow := begin(t, pool)
	addIn(t, o, slow, "slow") // position 4
	commit(t, o, pool, event("c"))
	r := newReader(t, pool, 2)
	require.Equal(t, []int64{1, 2, 3, 5}, read(t, r))
	commit(t, o, pool, event("a"), event("b"), event("c")) // 6 to 8
	require.NoError(t, slow.Commit(t.Context()))
	_, found, err := r.Next(t.Context(), false)
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, r.Advance(t.Context(), 6, nil)) // 4 and 6 are out, 7 and 8 are not
	_, err = pool.Exec(t.Context(), `insert into outbox_held values ($1, 'b', 2)`, testTopic)
	require.NoError(t, err)

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
		l := newLedger()
		n, err := Republish(t.Context(), pool, l, c.Selection)
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
	o, pool := newOutbox(t), newDatabase(t)
	const copies = "dlq.group.topic"
	copied := event("k")
	copied.Topic = copies
	id := commit(t, o, pool, event("k"), event("k"), event("k"), copied)[3].ID
	require.Len(t, read(t, newReader(t, pool, 10)), 4)

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
		l := newLedger()
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

func TestRepublishAfterARestore(t *testing.T) {
	t.Parallel()
	o, pool := newOutbox(t), newDatabase(t)
	addMany(t, o, pool, 5, 2)
	require.Len(t, read(t, newReader(t, pool, 10)), 5)
	_, err := pool.Exec(t.Context(), `update outbox set xid = '4000000000'`) // as if of a cluster that was far ahead
	require.NoError(t, err)
	restoreHere(t, pool)
	_, err = Republish(t.Context(), pool, newLedger(), Selection{From: 1})
	require.ErrorIs(t, err, ErrRestoring)
	r := newReader(t, pool, 10)
	require.NoError(t, r.Rebase(t.Context()))
	read(t, r)
	n, err := Republish(t.Context(), pool, newLedger(), Selection{From: 1})
	require.NoError(t, err)
	require.Equal(t, 5, n)
}

func TestRepublishErrors(t *testing.T) {
	t.Parallel()
	o, pool, l := newOutbox(t), newDatabase(t), newLedger()
	_, err := Republish(t.Context(), pool, l, Selection{})
	require.ErrorIs(t, err, ErrEmptySelection)
	addMany(t, o, pool, 5, 2)
	read(t, newReader(t, pool, 10))
	down := errors.New("no broker")
	l.Follow(func(int, string, []*message.Message) error { return down })
	n, err := Republish(t.Context(), pool, l, Selection{From: 1})
	require.ErrorIs(t, err, down)
	require.Zero(t, n)
}
