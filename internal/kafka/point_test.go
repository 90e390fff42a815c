package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// database is a [kafka.Points] in memory; its handler moves the points as an inbox does.
type database struct {
	mu       sync.Mutex
	points   map[int32]event.Point
	fails    int // how many calls
	rewounds []string
	handled  []string // partition/offset
}

var errWentBack = errors.New("the database went back")

func (d *database) ReadPoints(context.Context, string) (map[int32]event.Point, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails > 0 {
		d.fails--
		return nil, errors.New("no database")
	}
	return maps.Clone(d.points), nil
}

func (d *database) StorePoint(_ context.Context, _ string, partition int32, to event.Point) error {
	d.set(partition, to)
	return nil
}

func (d *database) Rewound(cause string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rewounds = append(d.rewounds, cause)
}

func (d *database) handle(_ context.Context, batch []*message.Message) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, msg := range batch {
		origin := placeOf(msg)
		p, exists := d.points[origin.Partition]
		if !exists || p.Next < *origin.From {
			return i, errWentBack
		}
		if origin.Offset+1 >= p.Next {
			d.points[origin.Partition] = event.Point{Next: origin.Offset + 1, Time: origin.Time.UnixMilli()}
		}
		d.handled = append(d.handled, fmt.Sprintf("%d/%d", origin.Partition, origin.Offset))
	}
	return len(batch), nil
}

func (d *database) set(partition int32, p event.Point) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.points[partition] = p
}

func (d *database) point(partition int32) event.Point {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.points[partition]
}

// taken waits for n new records.
func (d *database) taken(t *testing.T, n int) (handled []string) {
	t.Helper()
	testkit.Until(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		handled = d.handled
		return len(handled) >= n
	}, "want %d, have %v", n, &handled)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handled = nil
	return handled
}

func (d *database) causes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.rewounds...)
}

func offsets(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("0/%d", i))
	}
	return list
}

type rewinding struct {
	*database
	brokers []string
	topic   string
	cfg     kafka.ConsumerConfig
	log     *lines
}

func newRewinding(t *testing.T, n int) *rewinding {
	t.Helper()
	brokers := kafkatest.Brokers(t)
	r := &rewinding{
		database: &database{points: map[int32]event.Point{}}, brokers: brokers, topic: kafkatest.Topic(t, brokers, 1),
		cfg: batches(brokers, kafkatest.Group(t)), log: &lines{},
	}
	r.cfg.Points, r.cfg.LookEvery = r.database, time.Hour
	r.publish(t, n)
	return r
}

// publish gives each record a different time.
func (r *rewinding) publish(t *testing.T, n int) {
	t.Helper()
	at := time.Now()
	producer := rawProducer(t, r.brokers, nil)
	for i := range n {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: r.topic, Value: sarama.StringEncoder("x"), Timestamp: at.Add(time.Duration(i) * time.Millisecond),
		})
		require.NoError(t, err)
	}
}

func (r *rewinding) start(t *testing.T) *member {
	t.Helper()
	return consume(t, r.cfg, r.topic, r.handle, slog.New(r.log))
}

func (r *rewinding) end(t *testing.T, m *member, offset int64) {
	t.Helper()
	m.awaitPartition(t)
	testkit.Until(t, func() bool { return committed(t, r.brokers, r.cfg.Group, r.topic) == offset })
	m.close()
}

func (r *rewinding) handleAll(t *testing.T, n int) {
	t.Helper()
	r.end(t, r.start(t), int64(n))
	r.taken(t, n)
}

func (r *rewinding) requireWarnings(t *testing.T, texts ...string) {
	t.Helper()
	var warnings []string
	for _, text := range r.log.all() {
		if text != "consuming" {
			warnings = append(warnings, text)
		}
	}
	require.Equal(t, texts, warnings)
}

func TestAMemberReadsAgainFromThePointOfADatabaseThatWentBack(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(t *testing.T, r *rewinding, back event.Point){
		"while it is down": func(t *testing.T, r *rewinding, back event.Point) {
			t.Helper()
			r.end(t, r.start(t), 6)
			r.taken(t, 3)
			r.set(0, back)
			r.start(t)
		},
		"while it has nothing to do": func(t *testing.T, r *rewinding, back event.Point) {
			t.Helper()
			r.cfg.LookEvery = 20 * time.Millisecond
			r.start(t)
			r.taken(t, 3)
			r.set(0, back)
		},
		"at its next record": func(t *testing.T, r *rewinding, back event.Point) {
			t.Helper()
			r.start(t)
			r.taken(t, 3)
			r.set(0, back)
			r.publish(t, 1)
		},
		"while its database does not answer at the start": func(t *testing.T, r *rewinding, back event.Point) {
			t.Helper()
			r.end(t, r.start(t), 6)
			r.taken(t, 3)
			r.set(0, back)
			r.fails = 3
			r.start(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRewinding(t, 3)
			r.handleAll(t, 3)
			back := r.point(0)
			r.publish(t, 3)
			meet(t, r, back)
			require.Equal(t, offsets(3, 6), r.taken(t, 3)[:3])
			require.Equal(t, []string{kafka.CauseDatabase}, r.causes())
			testkit.Until(t, func() bool { return r.point(0).Next >= 6 })
		})
	}
}

func TestAPartitionThatComesLaterBeginsAtItsPoint(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, msgs := fill(t, brokers, 40)
	d := &database{points: map[int32]event.Point{}}
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.Points, cfg.LookEvery = d, time.Hour
	stays := consume(t, cfg, topic, d.handle, nil)
	d.taken(t, len(msgs))
	goes := consume(t, cfg, topic, d.handle, nil)
	goes.awaitPartition(t)
	moved := goes.Standings()[0].Partition
	next := d.point(moved).Next
	require.Equal(t, next, committedOf(t, brokers, cfg.Group, topic, moved))

	d.set(moved, event.Point{Next: next - 2})
	goes.close()
	require.Equal(t, []string{fmt.Sprintf("%d/%d", moved, next-2), fmt.Sprintf("%d/%d", moved, next-1)}, d.taken(t, 2))
	require.Equal(t, []string{kafka.CauseDatabase}, d.causes())
	testkit.Until(t, func() bool { return len(stays.Standings()) == 2 })
}

func TestAMemberReadsAllOfALogThatLostRecords(t *testing.T) {
	t.Parallel()
	for name, point := range map[string]func(event.Point) event.Point{
		"another record below the point": func(p event.Point) event.Point {
			return event.Point{Next: p.Next, Time: p.Time - 1}
		},
		"the end is below the point": func(p event.Point) event.Point {
			return event.Point{Next: p.Next + 4, Time: p.Time}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRewinding(t, 4)
			r.handleAll(t, 4)
			lost := point(r.point(0))
			r.set(0, lost)
			m := r.start(t)
			require.Equal(t, offsets(0, 4), r.taken(t, 4))
			require.Equal(t, []string{kafka.CauseBroker}, r.causes())
			r.requireWarnings(t, "the broker went back")
			r.end(t, m, 4)
			r.start(t)
			r.publish(t, 1)
			require.Equal(t, offsets(4, 5), r.taken(t, 1), "nothing is read a third time")
		})
	}
}

// A member that ends while it reads a log again has a successor that continues there.
func TestALogIsReadAgainOnce(t *testing.T) {
	t.Parallel()
	r := newRewinding(t, 4)
	r.handleAll(t, 4)
	lost := r.point(0)
	lost.Time--
	r.set(0, lost)
	r.cfg.Batch = 1
	reached, stop := make(chan struct{}), make(chan struct{})
	m := consume(t, r.cfg, r.topic, func(ctx context.Context, batch []*message.Message) (int, error) {
		if placeOf(batch[0]).Offset == 2 {
			close(reached)
			<-stop
			return 0, ctx.Err()
		}
		return r.handle(ctx, batch)
	}, slog.New(r.log))
	<-reached
	m.stop()
	close(stop)
	m.close()
	require.Equal(t, offsets(0, 2), r.taken(t, 2))
	r.start(t)
	require.Equal(t, offsets(2, 4), r.taken(t, 2))
	require.Equal(t, []string{kafka.CauseBroker}, r.causes())
}

// A member that dies before its group knows where it reads again leaves the point to its successor.
func TestAPointThatWasPutBackIsOfTheBroker(t *testing.T) {
	t.Parallel()
	r := newRewinding(t, 4)
	r.handleAll(t, 4)
	r.set(0, event.Point{Time: event.ReadAgain})
	r.start(t)
	require.Equal(t, offsets(0, 4), r.taken(t, 4))
	require.Equal(t, []string{kafka.CauseBroker}, r.causes())
}

// The database went back too, or had no point yet: only the committed offset shows the loss.
func TestAnOffsetBeyondTheEndIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, points := range map[string]func(map[int32]event.Point){
		"with a point": func(map[int32]event.Point) {}, "without a point": func(all map[int32]event.Point) { clear(all) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRewinding(t, 2)
			r.handleAll(t, 2)
			r.publish(t, 2)
			commit(t, r.brokers, r.cfg.Group, r.topic, 9)
			points(r.points)
			r.start(t)
			require.Equal(t, offsets(0, 4), r.taken(t, 4))
			require.Equal(t, []string{kafka.CauseBroker}, r.causes())
		})
	}
}

func commit(t *testing.T, brokers []string, group, topic string, offset int64) {
	t.Helper()
	client, err := sarama.NewClient(brokers, kafka.Config{Brokers: brokers}.Client())
	require.NoError(t, err)
	manager, err := sarama.NewOffsetManagerFromClient(group, client)
	require.NoError(t, err)
	partition, err := manager.ManagePartition(topic, 0)
	require.NoError(t, err)
	partition.ResetOffset(offset, "")
	partition.MarkOffset(offset, "")
	require.NoError(t, partition.Close())
	require.NoError(t, manager.Close())
	require.NoError(t, client.Close())
	require.Equal(t, offset, committed(t, brokers, group, topic))
}

func TestAPointWhoseRecordExpired(t *testing.T) {
	t.Parallel()
	r := newRewinding(t, 6)
	r.handleAll(t, 6)
	deleteRecords(t, r.brokers, r.topic, 4)
	last := r.point(0)
	r.set(0, event.Point{Next: 4, Time: last.Time - 2})
	m := r.start(t)
	require.Equal(t, offsets(4, 6), r.taken(t, 2))
	require.Equal(t, []string{kafka.CauseDatabase}, r.causes())
	r.end(t, m, 6)

	r.set(0, event.Point{Next: 3, Time: last.Time - 3})
	r.cfg.UnhealthyAfter = 30 * time.Millisecond
	m = r.start(t)
	testkit.Until(t, func() bool { return errors.Is(m.Healthy(t.Context()), kafka.ErrOffsetGone) })
	require.ErrorContains(t, m.Healthy(t.Context()), "3, the log has 4 to 6")
	r.requireWarnings(t, "the database went back", "partition is not read")
	r.mu.Lock()
	delete(r.points, 0) // an operator accepts the loss
	r.mu.Unlock()
	require.Equal(t, offsets(4, 6), r.taken(t, 2))
	require.Equal(t, last, r.point(0))
}

// A group of the first edition has offsets and no points. So has one whose database went back to before its first.
func TestAGroupWithoutPointsReadsAllOfItsLog(t *testing.T) {
	t.Parallel()
	r := newRewinding(t, 4)
	r.handleAll(t, 4)
	r.points = map[int32]event.Point{}
	m := r.start(t)
	require.Equal(t, offsets(0, 4), r.taken(t, 4))
	require.Equal(t, []string{kafka.CauseDatabase}, r.causes())
	r.end(t, m, 4)
	r.start(t)
	r.publish(t, 1)
	require.Equal(t, offsets(4, 5), r.taken(t, 1), "nothing is read a third time")
}

// The marks that end a transaction are offsets without a record.
func TestAPositionCrossesOffsetsWithoutARecord(t *testing.T) {
	t.Parallel()
	r := newRewinding(t, 0)
	producer, send := transactional(t, r.brokers, r.topic)
	for range 2 { // 0 is aborted, 1 its mark, 2 a record, 3 its mark, and again
		send(producer.AbortTxn)
		send(producer.CommitTxn)
	}
	r.cfg.LookEvery, r.cfg.Batch = time.Millisecond, 1
	m := r.start(t)
	require.Equal(t, []string{"0/2", "0/6"}, r.taken(t, 2))
	r.publish(t, 1)
	require.Equal(t, []string{"0/8"}, r.taken(t, 1))
	r.end(t, m, 9)
	m = r.start(t)
	r.publish(t, 1)
	require.Equal(t, []string{"0/9"}, r.taken(t, 1))
	require.Empty(t, r.causes())
	r.end(t, m, 10)
}
