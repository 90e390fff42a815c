package verify_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/test/inboxtest"
)

// layStale gives another producer's event the first version of key-0, which the key has reached.
func (s *system) layStale(t *testing.T) (id string) {
	t.Helper()
	id = uuid.Must(uuid.NewV7()).String()
	s.lay(t, event.Event{
		ID: id, Source: "/other", Type: inboxtest.Type, Key: "key-0", Version: 1, Time: time.Now(),
		Data: []byte(`{"value":"x"}`),
	}, -1)
	return id
}

func TestAStaleEventIsNotLost(t *testing.T) {
	t.Parallel()
	s := settled(t)
	id := s.layStale(t)
	s.consume(t)
	var rows int
	require.NoError(t, s.pool.QueryRow(t.Context(), `select count(*) from inbox where event_id = $1`, id).Scan(&rows))
	require.Equal(t, 1, rows, "of the unordered consumer alone")
	verdict := s.verify(t)
	requireWhole(t, verdict)
	require.EqualValues(t, 9, verdict.Consumed[0].Handled)
	require.Zero(t, s.pauses)
}

func TestALostEventIsNotTakenForStale(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.layStale(t)
	s.consume(t)
	s.exec(t, `delete from inbox where consumer = $1 and event_id = (
		select event_id::text from outbox where key = 'key-0' and version = 1)`, consumer)
	verdict := s.verify(t)
	require.Equal(t, []verify.Rule{"V4"}, rulesOf(verdict))
	require.Equal(t, "key-0", verdict.Findings[0].Key)
}

func TestWhatMadeAnEventStaleIsGone(t *testing.T) {
	t.Parallel()
	s := settled(t)
	s.layStale(t)
	s.consume(t)
	ends, err := s.ends(t.Context())
	require.NoError(t, err)
	place := s.place(t, "key-0")
	require.NoError(t, s.admin(t).DeleteRecords(s.topic, map[int32]int64{place: ends[place] - 1}))
	verdict := s.verify(t)
	requireClean(t, verdict)
	var forgotten int64
	for _, u := range verdict.Unverifiable {
		if u.Subject == consumer && u.Reason == verify.TopicForgot {
			forgotten = u.Events
		}
	}
	require.EqualValues(t, ends[place]+1, forgotten,
		"the rows of the records before it, the record itself, and the version of its key")
}

// The key's next event, in the partition that it has since, may have come before the lost one.
func TestALostEventOfAKeyThatMoved(t *testing.T) {
	t.Parallel()
	s := settled(t)
	hasMoved := func(key string) bool { return s.placeOf(t, key, 2*partitions) != s.place(t, key) }
	key := keysOf(5)[slices.IndexFunc(keysOf(5), hasMoved)]
	s.exec(t, `delete from inbox where consumer = $1 and event_id = (
		select event_id::text from outbox where key = $2 order by version desc limit 1)`, consumer, key)
	require.Equal(t, []verify.Rule{"V4"}, rulesOf(s.verify(t)))

	s.addPartitions(t)
	s.add(t, key)
	s.publish(t)
	place := s.placeOf(t, key, 2*partitions)
	moved, err := s.scan(t.Context(), place, 0, 1)
	require.NoError(t, err)
	_, err = s.inboxes[consumer].Middleware(s.mux.HandleMessage)(moved[0])
	require.NoError(t, err)
	require.NoError(t, s.commitOffsets(consumer, map[int32]int64{place: 1}))
	verdict := s.verify(t)
	requireClean(t, verdict)
	require.EqualValues(t, 8, verdict.Consumed[0].Handled, "all but the lost one")
	require.Contains(t, verdict.Unverifiable,
		verify.Unverifiable{Subject: consumer, Reason: verify.FewerPartitions, Events: 1})
}
