package consumer_test

import (
	"context"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// shelf is a store of positions, of one partition.
type shelf struct {
	mu    sync.Mutex
	next  int64
	known bool
	down  bool // it cannot be written to
	tries int  // while it was down
}

func (s *shelf) stop()  { s.setDown(true) }
func (s *shelf) start() { s.setDown(false) }

func (s *shelf) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *shelf) refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

func (s *shelf) Position(context.Context, string, int32) (int64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next, s.known, nil
}

func (s *shelf) SetPosition(_ context.Context, _ string, _ int32, next int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.known = next, true
	return nil
}

func (s *shelf) Advance(_ context.Context, _ string, _ int32, from, next int64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down:
		s.tries++
		return false, context.DeadlineExceeded
	case !s.known || s.next < from:
		return false, nil
	}
	s.next = max(s.next, next)
	return true, nil
}

// restore brings an earlier state back; a negative one: from before the store knew the partition.
func (s *shelf) restore(next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.known = next, next >= 0
}

func (s *shelf) at() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// stored is a consumer with a store, whose handler gives the ids that it gets to a channel.
func stored(t *testing.T, s *shelf, group, topic string, brokers []string) (r *running, handled chan string) {
	t.Helper()
	handled = make(chan string, 1000)
	cfg := batches(brokers, group)
	cfg.Positions = s
	return consume(t, cfg, topic, func(_ context.Context, batch []*message.Message) (int, error) {
		for _, id := range idsOf(batch) {
			handled <- id
		}
		return len(batch), nil
	}), handled
}

func take(t *testing.T, from <-chan string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = receive(t, from)
	}
	return ids
}

// The database was restored while nothing ran, or while the member was reading: what it has forgotten comes again, and
// the group goes on from there.
func TestAGroupGoesBackWithItsStore(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	for name, to := range map[string]int64{"by some records": 2, "to before it knew the partition": -1, "not at all": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic, ids := published(t, brokers, 5)
			group, store := kafkatest.Group(t), &shelf{}
			more := events(7, "a")[5:]
			all := append(ids, idsOf(more)...)
			first, handled := stored(t, store, group, topic, brokers)
			require.Equal(t, ids, take(t, handled, 5))
			first.stop()
			require.NoError(t, receive(t, first.ended))
			require.EqualValues(t, 5, store.at())
			require.EqualValues(t, 5, committed(t, brokers, group, topic))

			store.restore(to)
			second, handled := stored(t, store, group, topic, brokers)
			require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, more[0]))
			from := max(to, 0)
			require.Equal(t, all[from:6], take(t, handled, 6-int(from)))
			testkit.Until(t, func() bool { return store.at() == 6 })

			store.restore(min(to, 2)) // as it is read
			require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, more[1]))
			require.Equal(t, all[6:], take(t, handled, 1), "then it is noticed")
			from = min(from, 2)
			require.Equal(t, all[from:], take(t, handled, 7-int(from)))
			second.stop()
			require.NoError(t, receive(t, second.ended))
			require.EqualValues(t, 7, store.at())
			require.EqualValues(t, 7, committed(t, brokers, group, topic))
		})
	}
}

// What is not stored is not committed, so that the store is behind the group for one reason only.
func TestAnOffsetIsStoredBeforeItIsCommitted(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 5)
	group, store := kafkatest.Group(t), &shelf{down: true}
	first, handled := stored(t, store, group, topic, brokers)
	require.Equal(t, ids, take(t, handled, 5))
	first.stop()
	require.NoError(t, receive(t, first.ended))
	require.EqualValues(t, -1, committed(t, brokers, group, topic))

	store.start()
	_, handled = stored(t, store, group, topic, brokers)
	require.Equal(t, ids, take(t, handled, 5))
	testkit.Until(t, func() bool { return committed(t, brokers, group, topic) == 5 })
}

// The store was restored to the very position that it took last, so that no row is behind. What was handled between
// that and its going away was never stored, and comes again.
func TestWhatWasHandledBeforeTheStoreWentAwayComesAgain(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 2)
	group, store := kafkatest.Group(t), &shelf{}
	running, handled := stored(t, store, group, topic, brokers)
	require.Equal(t, ids, take(t, handled, 2))
	testkit.Until(t, func() bool { return store.at() == 2 })

	store.stop()
	more := events(5, "a")[2:]
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, more...))
	require.Equal(t, idsOf(more), take(t, handled, 3))
	refused := store.refused()
	testkit.Until(t, func() bool { return store.refused() > refused })
	require.EqualValues(t, 2, store.at())
	store.start()
	require.Equal(t, idsOf(more), take(t, handled, 3))
	testkit.Until(t, func() bool { return store.at() == 5 })
	running.stop()
	require.NoError(t, receive(t, running.ended))
	require.EqualValues(t, 5, committed(t, brokers, group, topic))
	require.Empty(t, handled)
}

// An operator's tool says where to go on, in either direction.
func TestAnOffsetOfAnOperatorIsBelieved(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	for name, to := range map[string]int64{"forward": 7, "back": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic, ids := published(t, brokers, 5)
			group, store := kafkatest.Group(t), &shelf{}
			first, handled := stored(t, store, group, topic, brokers)
			require.Equal(t, ids, take(t, handled, 5))
			first.stop()
			require.NoError(t, receive(t, first.ended))

			more := events(9, "a")[5:]
			require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, more...))
			commit(t, batches(brokers, group), topic, to, "")
			_, handled = stored(t, store, group, topic, brokers)
			require.Equal(t, append(ids, idsOf(more)...)[to:], take(t, handled, 9-int(to)))
			testkit.Until(t, func() bool { return store.at() == 9 })
		})
	}
}
