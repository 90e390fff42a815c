package consumer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/kafka"
)

// fakeSession is a session and a claim without a broker: n records, then silence.
type fakeSession struct {
	sarama.ConsumerGroupSession
	records chan *sarama.ConsumerMessage
	marked  []int64
}

func newFakeSession(n int) *fakeSession {
	s := &fakeSession{records: make(chan *sarama.ConsumerMessage, n)}
	for i := range n {
		s.records <- &sarama.ConsumerMessage{Topic: "t", Offset: int64(i), Value: make([]byte, i%7)}
	}
	return s
}

func (s *fakeSession) MarkOffset(_ string, _ int32, offset int64, _ string) {
	s.marked = append(s.marked, offset)
}
func (s *fakeSession) Context() context.Context                 { return context.Background() }
func (s *fakeSession) Topic() string                            { return "t" }
func (s *fakeSession) Partition() int32                         { return 0 }
func (s *fakeSession) InitialOffset() int64                     { return 0 }
func (s *fakeSession) HighWaterMarkOffset() int64               { return 0 }
func (s *fakeSession) Messages() <-chan *sarama.ConsumerMessage { return s.records }

// ready is a partition whose records all lie ready, beyond every limit of bytes.
func (s *fakeSession) ready(m *Consumer) *partition {
	p := newPartition(m, s, s)
	for range len(s.records) {
		put(p.queue, <-s.records)
	}
	return p
}

// put makes a record lie ready, if there is room for it.
func put(q *queue, m *sarama.ConsumerMessage) bool {
	_, full := q.put(new(detacher).detach(m))
	return !full
}

func offsetOf(msg *message.Message) int64 {
	origin, _ := cloudevent.OriginFrom(msg.Context())
	return origin.Offset
}

// weightOf is what a record without a key and headers takes.
func weightOf(msg *message.Message) int { return 256 + len(msg.Payload) }

// quick is a consumer that has begun, without a broker. Each of its partitions calls when it likes.
func quick(batch, maxBytes int) *Consumer {
	cfg := Config{NackBackoff: time.Microsecond, UnhealthyAfter: time.Hour}.WithDefaults()
	cfg.Batch, cfg.MaxBytes = batch, maxBytes
	c := &Consumer{
		cfg: cfg, log: slog.New(slog.DiscardHandler), turns: newTurns(100, turnLimit), partitions: map[int32]*partition{},
	}
	c.begin(context.Background(), "t")
	return c
}

// TestWorker: for every answer of a handler no batch is too large, offsets are marked for the handled prefix alone, a
// call begins where the last one stopped, and in the end everything was handled.
func TestWorker(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 60).Draw(t, "records")
		m := quick(rapid.IntRange(1, 12).Draw(t, "batch"), rapid.SampledFrom([]int{0, 1, 600, 10_000}).Draw(t, "bytes"))
		session, next := newFakeSession(total), int64(0)
		var marks []int64
		defer m.cancel()
		p := newPartition(m, session, session)
		m.handle = func(_ context.Context, batch []*message.Message) (int, error) {
			require.LessOrEqual(t, len(batch), m.cfg.Batch)
			size := 0
			for i, r := range batch {
				require.Equal(t, next+int64(i), offsetOf(r))
				size += weightOf(r)
			}
			require.True(t, m.cfg.MaxBytes == 0 || size <= m.cfg.MaxBytes || len(batch) == 1)
			require.Equal(t, marks, session.marked)
			handled := rapid.IntRange(0, len(batch)).Draw(t, "handled")
			if handled > 0 {
				next += int64(handled)
				marks = append(marks, next)
			}
			if next == int64(total) {
				p.leave(nil)
			}
			if rapid.Bool().Draw(t, "fails") {
				return handled, errors.New("no")
			}
			return handled, nil
		}
		var reading sync.WaitGroup
		reading.Go(func() { p.queue.fill(session.records, p.leaving.Done()) })
		p.work()
		p.cancel(errPartitionLost)
		reading.Wait()
		require.Equal(t, int64(total), next)
		require.Equal(t, marks, session.marked)
	})
}

// TestALookTakesUpWhereSaramaStands: what was read past sarama is dropped when sarama delivers it after all.
func TestALookTakesUpWhereSaramaStands(t *testing.T) {
	t.Parallel()
	m := quick(10, 0)
	defer m.cancel()
	session := newFakeSession(6)
	p := newPartition(m, session, session)
	require.True(t, put(p.queue, &sarama.ConsumerMessage{Offset: 0}))
	require.True(t, put(p.queue, &sarama.ConsumerMessage{Offset: 1}))
	close(session.records)
	p.queue.fill(session.records, p.leaving.Done())
	batch := p.queue.take(10)
	offsets := make([]int64, len(batch))
	for i, r := range batch {
		offsets[i] = r.Offset
	}
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5}, slices.Compact(offsets))
	require.Len(t, offsets, 6)
}

func TestAMemberFetchesNoMoreThanItIsTold(t *testing.T) {
	t.Parallel()
	cfg := Config{GroupConfig: kafka.GroupConfig{Config: kafka.Config{Brokers: []string{"b:1"}}, Group: "g"}}
	require.EqualValues(t, 256<<10, cfg.settings().Consumer.Fetch.Default)
	require.EqualValues(t, 1<<20, cfg.settings().Consumer.Fetch.MaxBytes)
	require.Equal(t, 1, cfg.settings().ChannelBufferSize, "it counts records")
	cfg.FetchBytes = kafka.MaxRequestBytes
	require.EqualValues(t, kafka.MaxRequestBytes, cfg.settings().Consumer.Fetch.Default)
	require.EqualValues(t, kafka.MaxRequestBytes, cfg.settings().Consumer.Fetch.MaxBytes)
	require.NoError(t, cfg.settings().Validate())
	cfg.FetchBytes = 10
	require.ErrorContains(t, cfg.Validate(), "fetch bytes")
}
