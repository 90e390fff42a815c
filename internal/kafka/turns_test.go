package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
)

// turnTable is a member whose partitions take turns, one at a time, and whose handler tells of its calls and waits.
type turnTable struct {
	member  *member
	calls   chan []entry // what each call got
	release chan struct{}
}

const turnBatch = 5

func newTurnTable(t *testing.T, limit time.Duration) *turnTable {
	t.Helper()
	table := &turnTable{calls: make(chan []entry, 10), release: make(chan struct{})}
	cfg := quick(turnBatch, 0)
	cfg.turns = newTurns(1, limit)
	cfg.deliver = func(_ *partition, batch []entry) (int, error) {
		table.calls <- batch
		<-table.release
		return len(batch), nil
	}
	table.member = newMember(context.Background(), cfg, orDiscard(nil))
	t.Cleanup(table.member.cancel)
	return table
}

// sit adds a partition with n records and the means to send it more and to let it go.
func (table *turnTable) sit(n int) (more func(n int), leave func()) {
	session := newFakeSession(10)
	for len(session.records) > n {
		<-session.records
	}
	next := int64(10)
	p := newPartition(table.member, session, session)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.work()
	}()
	return func(n int) {
			for range n {
				session.records <- &sarama.ConsumerMessage{Topic: "t", Offset: next}
				next++
			}
		}, func() {
			close(p.leaving)
			<-ended
		}
}

func TestWhatComesUntilAPartitionsTurnSharesItsCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTurnTable(t, time.Hour)
		_, leaveFirst := table.sit(1)
		require.Len(t, <-table.calls, 1)
		more, leaveSecond := table.sit(1)
		synctest.Wait() // for its turn
		require.Empty(t, table.calls)
		more(3)
		table.release <- struct{}{}
		require.Len(t, <-table.calls, 4)
		table.release <- struct{}{}
		leaveFirst()
		leaveSecond()
	})
}

func TestAFullBatchWaitsForNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTurnTable(t, time.Hour)
		_, leaveFirst := table.sit(1)
		require.Len(t, <-table.calls, 1)
		_, leaveSecond := table.sit(turnBatch)
		require.Len(t, <-table.calls, turnBatch)
		table.release <- struct{}{}
		table.release <- struct{}{}
		leaveFirst()
		leaveSecond()
	})
}

func TestACallThatLastsGivesItsTurnUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTurnTable(t, time.Second)
		began := time.Now()
		_, leaveFirst := table.sit(1)
		require.Len(t, <-table.calls, 1)
		_, leaveSecond := table.sit(2)
		require.Len(t, <-table.calls, 2, "beside the one that lasts")
		require.Equal(t, time.Second, time.Since(began))
		_, leaveThird := table.sit(3)
		table.release <- struct{}{} // whichever it is: the first one's end must give back no turn but its own
		table.release <- struct{}{}
		require.Len(t, <-table.calls, 3)
		_, leaveFourth := table.sit(4)
		synctest.Wait()
		require.Empty(t, table.calls, "the turn is the third one's")
		table.release <- struct{}{}
		require.Len(t, <-table.calls, 4)
		table.release <- struct{}{}
		for _, leave := range []func(){leaveFirst, leaveSecond, leaveThird, leaveFourth} {
			leave()
		}
	})
}

func TestAPartitionThatIsLetGoLeavesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := newTurnTable(t, time.Hour)
		_, leaveFirst := table.sit(1)
		require.Len(t, <-table.calls, 1)
		_, leaveSecond := table.sit(2)
		synctest.Wait()
		leaveSecond()
		_, leaveThird := table.sit(3)
		table.release <- struct{}{}
		require.Len(t, <-table.calls, 3)
		table.release <- struct{}{}
		leaveFirst()
		leaveThird()
	})
}
