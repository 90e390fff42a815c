package consumer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
)

// turnTable is a member whose partitions take turns, one at a time. Its handler tells of each call and lasts until it
// is released. A first partition has the turn.
type turnTable struct {
	member  *Consumer
	calls   chan int // how many records each call got
	release chan struct{}
	seats   []*seat
}

// seat is a partition.
type seat struct {
	*partition
	ended chan struct{}
}

const turnBatch = 5

// atTheTable runs a test on a clock of its own.
func atTheTable(t *testing.T, limit time.Duration, test func(*testing.T, *turnTable)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		table := &turnTable{calls: make(chan int, 10), release: make(chan struct{})}
		table.member = quick(turnBatch, 0)
		table.member.turns = newTurns(1, limit)
		table.member.handle = func(_ context.Context, batch []*message.Message) (int, error) {
			table.calls <- len(batch)
			<-table.release
			return len(batch), nil
		}
		defer table.member.cancel()
		table.sit(1)
		require.Equal(t, 1, <-table.calls)
		test(t, table)
		for _, s := range table.seats {
			s.rise()
		}
	})
}

// sit adds a partition with n records.
func (table *turnTable) sit(n int) *seat {
	s := &seat{(&fakeSession{}).ready(table.member), make(chan struct{})}
	s.send(0, n)
	table.seats = append(table.seats, s)
	go func() {
		defer close(s.ended)
		s.work()
	}()
	return s
}

// send gives the partition records with the offsets from one to another.
func (s *seat) send(from, to int) {
	for offset := from; offset < to; offset++ {
		put(s.queue, &sarama.ConsumerMessage{Topic: "t", Offset: int64(offset)})
	}
}

func (s *seat) rise() {
	s.leave(nil)
	<-s.ended
}

func TestWhatComesUntilAPartitionsTurnSharesItsCall(t *testing.T) {
	t.Parallel()
	atTheTable(t, time.Hour, func(t *testing.T, table *turnTable) {
		second := table.sit(1)
		synctest.Wait() // until it waits for its turn
		require.Empty(t, table.calls)
		second.send(1, 4)
		table.release <- struct{}{}
		require.Equal(t, 4, <-table.calls)
		table.release <- struct{}{}
	})
}

func TestAFullBatchWaitsForNoTurn(t *testing.T) {
	t.Parallel()
	atTheTable(t, time.Hour, func(t *testing.T, table *turnTable) {
		table.sit(turnBatch)
		require.Equal(t, turnBatch, <-table.calls)
		table.release <- struct{}{}
		table.release <- struct{}{}
	})
}

// The end of a call that has given its turn up gives back no other's.
func TestACallThatLastsGivesItsTurnUp(t *testing.T) {
	t.Parallel()
	atTheTable(t, time.Second, func(t *testing.T, table *turnTable) {
		began := time.Now()
		table.sit(2)
		require.Equal(t, 2, <-table.calls, "beside the one that lasts")
		require.Equal(t, time.Second, time.Since(began))
		table.release <- struct{}{}
		table.release <- struct{}{}
		table.sit(3)
		require.Equal(t, 3, <-table.calls)
		table.sit(4)
		synctest.Wait()
		require.Empty(t, table.calls, "the turn is the third one's")
		table.release <- struct{}{}
		require.Equal(t, 4, <-table.calls)
		table.release <- struct{}{}
	})
}

func TestAPartitionThatIsLetGoLeavesTheQueue(t *testing.T) {
	t.Parallel()
	atTheTable(t, time.Hour, func(t *testing.T, table *turnTable) {
		second := table.sit(2)
		synctest.Wait()
		second.rise()
		table.sit(3)
		table.release <- struct{}{}
		require.Equal(t, 3, <-table.calls)
		table.release <- struct{}{}
	})
}
