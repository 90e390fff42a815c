package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
)

// Points is a handler's database. The handler moves a topic-partition's point in the transaction of each outcome. A
// point below the owner's position shows that the database went back.
type Points interface {
	// ReadPoints returns the points of a topic's partitions; one without a point is missing.
	ReadPoints(ctx context.Context, topic string) (map[int32]event.Point, error)
	// StorePoint stores a topic-partition's first point. Only one with [event.ReadAgain] replaces a point: all of the log
	// is read again.
	StorePoint(ctx context.Context, topic string, partition int32, to event.Point) error
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
}

// awaitStart returns false if only the next session can begin where the partition does, or the partition moves. A
// partition whose next record is not on the log is not read.
func (p *claim) awaitStart() bool {
	c, topic, partition := p.consumer, p.source.Topic(), p.source.Partition()
	if c.cfg.Points == nil {
		return true
	}
	pauses := failure.Backoff{Min: c.cfg.Backoff, Max: min(20*c.cfg.Backoff, refusalOver/2)}
	for isLogged := false; ; {
		s, err := c.decideStart(p.ctx, partition)
		if err == nil {
			p.rewind(s)
			p.position.Store(s.offset)
			p.isMisplaced.Store(p.source.InitialOffset() > s.offset)
			return !p.isMisplaced.Load()
		}
		if errors.Is(err, ErrOffsetGone) && !isLogged {
			isLogged = true
			c.log.Error("partition is not read", "topic", topic, "partition", partition, "error", err)
		}
		p.refused(err)
		if failure.Sleep(p.leaving, pauses.Next()) != nil {
			return false
		}
	}
}

func (p *claim) rewind(s start) {
	if s.cause == "" {
		return
	}
	c, topic, partition := p.consumer, p.source.Topic(), p.source.Partition()
	p.session.ResetOffset(topic, partition, s.offset, "")
	c.cfg.Points.Rewound(s.cause)
	log := c.log.With("topic", topic, "partition", partition, "from", s.offset, "to", s.committed)
	if s.cause == CauseBroker {
		log.Warn("the broker went back")
	} else {
		log.Warn("the database went back")
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

// decideStart returns the lower of point and committed offset. If another record is below the point, the log lost
// records, and all of it is read again. It reads the point after the committed offset: an owner that still works moves
// its point first.
func (c *Consumer) decideStart(ctx context.Context, partition int32) (s start, err error) {
	c.deciding.Lock()
	defer c.deciding.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	err = Ask(ctx, c.cfg.Config, "compare offsets", func(cluster Cluster) error {
		found, err := cluster.groupOffsets(c.cfg.Group, c.topic, partition)
		if err != nil {
			return err
		}
		at := found[0]
		points, err := c.cfg.Points.ReadPoints(ctx, c.topic)
		if err != nil {
			return err
		}
		point, exists := points[partition]
		if !exists {
			point.Next = at.oldest
		}
		matches, err := cluster.matches(c.topic, partition, point, at)
		if err != nil {
			return err
		}
		s = start{offset: at.oldest, committed: at.committed}
		switch {
		case point.Next < at.oldest:
			return at.gone(point.Next)
		case (!exists || !matches) && at.committed >= 0 && at.committed < at.oldest:
			return at.gone(at.committed)
		case !matches:
			s.cause = CauseBroker // an owner that follows continues where this one ends
			err = c.cfg.Points.StorePoint(ctx, c.topic, partition, event.Point{Next: at.oldest, Time: event.ReadAgain})
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
		if !exists {
			err = c.cfg.Points.StorePoint(ctx, c.topic, partition, point)
		}
		return err
	})
	return s, err
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
