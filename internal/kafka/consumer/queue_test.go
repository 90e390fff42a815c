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

// However many records a batch may have, no more bytes are taken from sarama than a partition may hold. A record that
// is larger comes by itself, and what is behind it waits.
func TestWhatIsHeldIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, batch = 10_000, 50
		m := quick(batch, most)
		calls, release := make(chan []*message.Message), make(chan struct{})
		m.handle = func(_ context.Context, batch []*message.Message) (int, error) {
			calls <- batch
			<-release
			return len(batch), nil
		}
		session := &fakeSession{records: make(chan *sarama.ConsumerMessage, 100)}
		total := cap(session.records)
		for i := range total {
			size := 1000
			if i == 20 {
				size = 5 * most
			}
			session.records <- &sarama.ConsumerMessage{Topic: "t", Offset: int64(i), Value: make([]byte, size)}
		}
		p := newPartition(m, session, session)
		left := make(chan struct{})
		go func() {
			defer close(left)
			p.own(p.work)
		}()
		for next := 0; next < total; {
			held := 0
			for _, r := range <-calls {
				require.EqualValues(t, next, offsetOf(r))
				held += weightOf(r)
				next++
			}
			synctest.Wait() // until no more is taken
			if held > most {
				require.EqualValues(t, 21, next)
				require.Equal(t, 1, len(p.queue.entries), "it is held by itself")
			} else {
				held = 0
				for _, r := range p.queue.entries {
					held += r.weight
				}
				require.LessOrEqual(t, held, most)
				require.Equal(t, held, p.queue.bytes)
			}
			release <- struct{}{}
		}
		synctest.Wait()
		require.Zero(t, p.queue.bytes, "all of it was given back")
		m.cancel()
		<-left
	})
}

// What was read past sarama is held too, and what sarama delivers of it afterwards is given back.
func TestWhatIsReadTwiceIsHeldOnce(t *testing.T) {
	t.Parallel()
	const most = 100_000
	m := quick(10, most)
	defer m.cancel()
	session := newFakeSession(6)
	p := newPartition(m, session, session)
	close(session.records)
	for offset := range int64(4) {
		require.True(t, put(p.queue, &sarama.ConsumerMessage{Offset: offset, Value: make([]byte, offset%7)}))
	}
	p.queue.fill(session.records, p.leaving.Done())
	require.Len(t, p.queue.take(10), 6)
	p.queue.release(6)
	require.Zero(t, p.queue.bytes)
	require.Zero(t, p.queue.readyBytes)
}

// sarama asks a broker again when all partitions have taken their part of its answer. So a partition takes its part at
// once, however few records a call of its handler gets: other partitions have nothing to do meanwhile.
func TestAnAnswerIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each, answer = 1000, 200
		m := quick(1, 4*answer*each)
		calls, release := make(chan int64), make(chan struct{})
		m.handle = func(_ context.Context, batch []*message.Message) (int, error) {
			calls <- offsetOf(batch[0])
			<-release
			return len(batch), nil
		}
		session := &fakeSession{records: make(chan *sarama.ConsumerMessage, 4*answer)}
		for offset := range int64(cap(session.records)) {
			session.records <- &sarama.ConsumerMessage{Topic: "t", Offset: offset, Value: make([]byte, each)}
		}
		p := newPartition(m, session, session)
		left := make(chan struct{})
		go func() {
			defer close(left)
			p.own(p.work)
		}()
		require.Zero(t, <-calls)
		synctest.Wait() // until no more is taken
		require.Less(t, len(session.records), cap(session.records)-answer, "its handler has not returned once")
		require.LessOrEqual(t, p.queue.readyBytes, 2*answer*each, "half of what it may hold")
		release <- struct{}{}
		for offset := int64(1); offset < int64(cap(session.records)); offset++ {
			require.Equal(t, offset, <-calls)
			release <- struct{}{}
		}
		m.cancel()
		<-left
	})
}

// A batch is not held up for a record that there is no room for: it comes when the batch is done.
func TestWhatThereIsNoRoomForIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := quick(10, 10_000)
		batches := make(chan int, 10)
		m.handle = func(_ context.Context, batch []*message.Message) (int, error) {
			batches <- len(batch)
			return len(batch), nil
		}
		session := &fakeSession{records: make(chan *sarama.ConsumerMessage, 10)}
		for offset := range int64(6) {
			session.records <- &sarama.ConsumerMessage{Topic: "t", Offset: offset, Value: make([]byte, 3000)}
		}
		p := newPartition(m, session, aLog{session, 6})
		left := make(chan struct{})
		began := time.Now()
		go func() {
			defer close(left)
			p.own(p.work)
		}()
		for taken := 0; taken < 6; {
			n := <-batches
			require.LessOrEqual(t, n, 3)
			taken += n
		}
		require.Zero(t, time.Since(began))
		m.cancel()
		<-left
	})
}

// A record that is kept must not keep its whole answer, and is the same byte for byte: null is not empty.
func TestADetachedRecordSharesNoMemory(t *testing.T) {
	t.Parallel()
	answer := []byte("keyvalueheadfoot")
	record := func() *sarama.ConsumerMessage {
		return &sarama.ConsumerMessage{
			Topic: "t", Offset: 7, Key: answer[:3], Value: answer[3:8],
			Headers: []*sarama.RecordHeader{
				{Key: answer[8:12], Value: answer[12:]}, {Key: answer[:0], Value: nil}, {Key: nil, Value: answer[:0]},
			},
		}
	}
	own := record()
	var memory detacher
	memory.detach(own)
	require.Equal(t, record(), own)
	clear(answer)
	require.Equal(t, "key", string(own.Key))
	require.Equal(t, "value", string(own.Value))
	require.Equal(t, "headfoot", string(own.Headers[0].Key)+string(own.Headers[0].Value))
	none := &sarama.ConsumerMessage{}
	memory.detach(none)
	require.Nil(t, none.Key)
	require.Nil(t, none.Value)
	own.Key = append(own.Key, '!')
	require.Equal(t, "value", string(own.Value), "nor does one part share with the next")
}

// aLog is a claim that knows where its log ends.
type aLog struct {
	*fakeSession
	end int64
}

func (l aLog) HighWaterMarkOffset() int64 { return l.end }

// sarama hands over one record after the other, each when it likes: all that it has fetched share a batch. What it only
// knows of is not waited for, or not for long.
func TestWhatWasFetchedTogetherSharesABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := quick(10, 10_000)
		batches := make(chan int, 10)
		m.handle = func(_ context.Context, batch []*message.Message) (int, error) {
			batches <- len(batch)
			return len(batch), nil
		}
		session := &fakeSession{records: make(chan *sarama.ConsumerMessage)}
		p := newPartition(m, session, aLog{session, 7})
		left := make(chan struct{})
		go func() {
			defer close(left)
			p.own(p.work)
		}()
		for offset := range int64(5) {
			session.records <- &sarama.ConsumerMessage{Topic: "t", Offset: offset}
			synctest.Wait()
		}
		began := time.Now()
		require.Equal(t, 5, <-batches)
		require.Equal(t, comingLimit, time.Since(began), "two more are on the log")
		for offset := int64(5); offset < 7; offset++ {
			require.Empty(t, batches)
			session.records <- &sarama.ConsumerMessage{Topic: "t", Offset: offset}
			synctest.Wait()
		}
		require.Equal(t, 2, <-batches)
		require.Equal(t, comingLimit, time.Since(began), "that was all")
		m.cancel()
		<-left
	})
}

// What was taken for damaged is read from another broker while its end is looked for: it stays what it is and where it
// is, and no gap comes behind it.
func TestNoGapComesBehindWhatWasRead(t *testing.T) {
	t.Parallel()
	at := func(offset int64) *sarama.ConsumerMessage { return &sarama.ConsumerMessage{Offset: offset} }
	q := newQueue(10_000, 10)
	require.True(t, put(q, at(10)))
	require.True(t, put(q, at(11)))
	added, _ := q.put(entry{ConsumerMessage: at(10), last: 10, gap: &gap{}})
	require.False(t, added)
	require.Len(t, q.entries, 2)
	require.EqualValues(t, 12, q.following(), "the partition does not go back")
	added, _ = q.put(entry{ConsumerMessage: at(12), last: 14, gap: &gap{}})
	require.True(t, added)
	require.EqualValues(t, 15, q.following())
	first := newQueue(10_000, sarama.OffsetOldest)
	added, _ = first.put(entry{ConsumerMessage: at(0), last: 0, gap: &gap{}})
	require.True(t, added, "of a group without an offset")
}
