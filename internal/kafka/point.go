package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// Points is the database of a group's handler. It stores a point per topic-partition, which the handler moves in the
// transaction of each outcome. A point below the owner's position shows that the database went back.
type Points interface {
	// ReadPoints returns the points of a topic's partitions; one without a point is missing.
	ReadPoints(ctx context.Context, topic string) (map[int32]event.Point, error)
	// BeginPoint stores a topic-partition's first point and returns it, or returns the stored one.
	BeginPoint(ctx context.Context, topic string, partition int32, first event.Point) (event.Point, error)
	// Knows reports whether the database has the outcome of the last of these records that leaves one there.
	Knows(ctx context.Context, records []*message.Message) (bool, error)
	// RewindPoint replaces the point from by a lower one, because all of the log is read again: its records are not those
	// of the point. It reports whether from was the stored one.
	RewindPoint(ctx context.Context, topic string, partition int32, from, to event.Point) (bool, error)
	// Rewound is called when records are read again because the database or the broker went back.
	Rewound(cause string)
}

// The causes of [Points].
const (
	CauseDatabase = "database"
	CauseBroker   = "broker"
)

type start struct {
	offset, committed int64
	cause             string // empty: no handled record is read again
	gone              error  // why there is no start
}

// placeClaims begins a session at its points. A claim places itself if this fails or it joins later.
func (h *groupHandler) placeClaims(session sarama.ConsumerGroupSession) {
	c := h.consumer
	partitions := session.Claims()[c.topic]
	clear(h.starts)
	if c.cfg.Points == nil || len(partitions) == 0 {
		return
	}
	starts, err := c.decideStarts(session.Context(), partitions)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range starts {
		if s.gone == nil {
			c.rewind(session, partitions[i], s)
			h.starts[partitions[i]] = s.offset
		}
	}
}

func (c *Consumer) rewind(session sarama.ConsumerGroupSession, partition int32, s start) {
	if s.cause == "" {
		return
	}
	session.ResetOffset(c.topic, partition, s.offset, "")
	c.cfg.Points.Rewound(s.cause)
	said := c.log.With("topic", c.topic, "partition", partition, "from", s.offset, "to", s.committed)
	if s.cause == CauseBroker {
		said.Warn("the broker went back")
	} else {
		said.Warn("the database went back")
	}
}

// awaitStart returns false if the claim begins elsewhere or the partition moves. A partition whose next record is not
// on the log is not read.
func (p *claim) awaitStart() bool {
	c, topic, partition := p.consumer, p.source.Topic(), p.source.Partition()
	if p.isPlaced || c.cfg.Points == nil && p.source.InitialOffset() >= 0 {
		return true
	}
	pauses := failure.Backoff{Min: c.cfg.Backoff, Max: min(20*c.cfg.Backoff, refusalOver/2)}
	for isLogged := false; ; {
		starts, err := c.decideStarts(p.ctx, []int32{partition})
		if err == nil {
			err = starts[0].gone
		}
		if err == nil {
			return p.begin(starts[0])
		}
		if errors.Is(err, ErrOffsetGone) && !isLogged {
			isLogged = true
			c.log.Error("partition is not read", "topic", topic, "partition", partition, "error", err)
		}
		p.progress.refused(err)
		if failure.Sleep(p.leaving, pauses.Next()) != nil {
			return false
		}
	}
}

// begin reports whether the claim reads from the start on. If it began higher, only the next session can begin
// elsewhere.
func (p *claim) begin(s start) bool {
	p.consumer.rewind(p.session, p.source.Partition(), s)
	p.position.Store(s.offset)
	p.isMisplaced.Store(p.source.InitialOffset() > s.offset)
	return !p.isMisplaced.Load()
}

func (c *Consumer) watchPoints(ctx context.Context) {
	for c.cfg.Points != nil && failure.Sleep(ctx, c.cfg.LookEvery) == nil {
		c.checkPoints(ctx)
	}
}

// checkPoints ends claims whose outcomes the database lost. It reads positions before points, so only a database that
// went back has a lower point.
func (c *Consumer) checkPoints(ctx context.Context) {
	if c.cfg.Points == nil {
		return
	}
	positions := make(map[*claim]int64)
	c.mu.Lock()
	for _, p := range c.claims {
		positions[p] = p.position.Load()
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	points, err := c.cfg.Points.ReadPoints(ctx, c.topic)
	if err != nil {
		return
	}
	for p, position := range positions {
		if points[p.source.Partition()].Next < position {
			p.isMisplaced.Store(true)
			p.leave()
		}
	}
}

// decideStarts reads the points after the committed offsets: an owner that still works moves its point first.
func (c *Consumer) decideStarts(ctx context.Context, partitions []int32) (starts []start, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	err = Ask(ctx, c.cfg.Config, "compare offsets", func(cluster Cluster) error {
		found, err := cluster.groupOffsets(c.cfg.Group, c.topic, partitions...)
		var points map[int32]event.Point
		if err == nil && c.cfg.Points != nil {
			points, err = c.cfg.Points.ReadPoints(ctx, c.topic)
		}
		if err != nil {
			return err
		}
		for i, at := range found {
			s, err := c.decideStart(ctx, cluster, partitions[i], at, points)
			if err != nil && !errors.Is(err, ErrOffsetGone) {
				return err
			}
			s.gone = err
			starts = append(starts, s)
		}
		return nil
	})
	return starts, err
}

// decideStart returns the lower of point and committed offset. If another record is below the point, the log lost
// records, and all of it is read again.
func (c *Consumer) decideStart(
	ctx context.Context, cluster Cluster, partition int32, at groupOffsets, points map[int32]event.Point,
) (s start, err error) {
	if c.cfg.Points == nil {
		if at.isGone() {
			return s, at.gone(at.committed)
		}
		return start{offset: at.next()}, nil
	}
	point, exists := points[partition]
	if !exists {
		if point, err = c.beginPoint(ctx, cluster, partition, at); err != nil {
			return s, err
		}
	}
	if point.Next < at.oldest {
		return s, at.gone(point.Next)
	}
	matches, err := cluster.matches(c.topic, partition, point, at)
	if err != nil {
		return s, err
	}
	s = start{offset: at.oldest, committed: at.committed}
	switch {
	case !matches && at.committed >= 0 && at.committed < at.oldest:
		return s, at.gone(at.committed)
	case !matches:
		s.cause = CauseBroker
		err = c.rewindPoint(ctx, partition, point, at.oldest)
	case at.committed > at.newest, at.committed > point.Next && point.Time == event.ReadAgain:
		s.offset, s.cause = point.Next, CauseBroker
	case at.committed > point.Next:
		s.offset, s.cause = point.Next, CauseDatabase
	default:
		s.offset = max(at.committed, at.oldest)
	}
	if at.committed >= 0 && at.committed <= s.offset {
		s.cause = "" // an earlier owner rewound it
	}
	return s, err
}

// rewindPoint lets an owner that follows continue where this one ends, and not at the start of the log.
func (c *Consumer) rewindPoint(ctx context.Context, partition int32, from event.Point, oldest int64) error {
	to := event.Point{Next: oldest, Time: event.ReadAgain}
	isRewound, err := c.cfg.Points.RewindPoint(ctx, c.topic, partition, from, to)
	if err == nil && !isRewound {
		err = errMoved
	}
	return err
}

var errMoved = failure.AsTransient(errors.New("another owner has moved the point"))

// beginPoint: if the database has the outcome below the committed offset, it has all earlier ones. Otherwise all of the
// log is read.
func (c *Consumer) beginPoint(
	ctx context.Context, cluster Cluster, partition int32, at groupOffsets,
) (first event.Point, err error) {
	first.Next = at.oldest
	switch {
	case at.committed >= 0 && at.committed < at.oldest:
		return first, at.gone(at.committed)
	case at.committed > at.oldest && at.committed <= at.newest:
		var below []*message.Message
		from := max(at.oldest, at.committed-int64(c.cfg.Batch))
		_, err = cluster.Scan(c.topic, partition, from, at.committed, func(m *message.Message) error {
			below = append(below, m)
			return nil
		})
		var known bool
		if err == nil {
			known, err = c.cfg.Points.Knows(ctx, below)
		}
		if err == nil && known {
			first.Next = at.committed
			first.Time, err = cluster.recordTime(c.topic, partition, at.committed-1)
		}
		if err != nil {
			return first, err
		}
	}
	return c.cfg.Points.BeginPoint(ctx, c.topic, partition, first)
}

func (o groupOffsets) gone(next int64) error {
	return fmt.Errorf("%w: %d, the log has %d to %d", ErrOffsetGone, next, o.oldest, o.newest)
}

// matches reports whether the record below the point is the point's, or has expired.
func (c Cluster) matches(topic string, partition int32, p event.Point, at groupOffsets) (bool, error) {
	if p.Next > at.newest { // unless another owner has moved the point since
		ends, err := c.Offsets(topic, []int32{partition}, sarama.OffsetNewest)
		if err != nil || p.Next > ends[0] {
			return false, err
		}
	}
	if p.Next <= at.oldest || p.Time <= 0 {
		return true, nil
	}
	found, err := c.recordTime(topic, partition, p.Next-1)
	return found == p.Time, err
}

// recordTime returns a record's append time in milliseconds since 1970; 0 without a record.
func (c Cluster) recordTime(topic string, partition int32, offset int64) (int64, error) {
	records, _, err := c.fetch(topic, partition, offset, oneBatch, sarama.ReadCommitted)
	if err != nil || len(records) == 0 || records[0].Offset != offset {
		return 0, err
	}
	return records[0].Timestamp.UnixMilli(), nil
}
