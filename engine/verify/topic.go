package verify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/engine/cloudevent"
)

// Log is what is asked of the broker.
type Log interface {
	// Ends returns of each partition of a topic, in their order, the first offset and the one behind the last record; none
	// of a topic that does not exist.
	Ends(ctx context.Context, topic string) (oldest, newest []int64, err error)
	// Since returns of each partition the first offset whose record was written at that time or later.
	Since(ctx context.Context, topic string, at time.Time) ([]int64, error)
	// Committed returns what a group has committed of each partition, -1 where there is nothing, and whether that is of a
	// topic of this name that was deleted since.
	Committed(ctx context.Context, group, topic string) (offsets []int64, otherTopic []bool, err error)
	// Scan calls each for the records of a partition that a consumer would get, with their [cloudevent.Origin]. It returns
	// the offset behind the last one: less than to where an open transaction lies before it.
	Scan(ctx context.Context, topic string, partition int32, from, to int64, each func(*message.Message)) (int64, error)
	// Place is the partition of a key in a topic with so many of them.
	Place(topic, key string, partitions int32) (int32, error)
}

// never is later than any record.
const never = math.MaxInt64 / 2

// ErrPartitions means that a topic was given more partitions, or created anew, while it was read.
var ErrPartitions = errors.New("verify: the topic's partitions changed meanwhile; ask again")

// partsOf are the partitions of a topic as they are when nothing of them is read yet. An hour before since is read,
// too: what is judged may be a repetition of what lies a little before it.
func (l *look) partsOf(ctx context.Context, topic string) ([]part, error) {
	oldest, newest, err := l.cfg.Log.Ends(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("ask for the ends of %s: %w", topic, err)
	}
	var from []int64
	if l.cfg.Since != nil && len(oldest) > 0 {
		if from, err = l.cfg.Log.Since(ctx, topic, l.cfg.Since.Add(-time.Hour)); err != nil {
			return nil, fmt.Errorf("ask for offsets of %s: %w", topic, err)
		}
	}
	parts := make([]part, len(oldest))
	for i := range parts {
		parts[i] = part{
			number: int32(i), index: int32(i), oldest: oldest[i], from: oldest[i], ghosts: newest[i], end: newest[i],
			firstAt: never,
		}
		if i < len(from) {
			parts[i].from = max(parts[i].from, from[i])
		}
	}
	return parts, nil
}

// readParts reads the partitions of one topic up to their present ends.
func (l *look) readParts(
	ctx context.Context, topic string, parts []part, each func(p *part, m *message.Message, o cloudevent.Origin),
) error {
	_, ends, err := l.endsAgain(ctx, topic, parts)
	if err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		next, err := l.cfg.Log.Scan(ctx, topic, p.number, p.from, ends[i], func(m *message.Message) {
			l.step()
			origin, _ := cloudevent.OriginFrom(m.Context())
			if p.firstAt == never {
				p.firstAt = origin.Time.Unix()
			}
			each(p, m, origin)
		})
		if err != nil {
			return fmt.Errorf("read %s/%d: %w", topic, p.number, err)
		}
		p.end, p.open = next, next < ends[i]
	}
	// Last, so that what was deleted meanwhile counts as deleted.
	oldest, _, err := l.endsAgain(ctx, topic, parts)
	if err != nil {
		return err
	}
	for i := range parts {
		parts[i].oldest = oldest[i]
		parts[i].cut = max(parts[i].from, oldest[i]) > 0
	}
	return nil
}

func (l *look) endsAgain(ctx context.Context, topic string, parts []part) (oldest, newest []int64, err error) {
	oldest, newest, err = l.cfg.Log.Ends(ctx, topic)
	if err == nil && len(newest) != len(parts) {
		err = ErrPartitions
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask for the ends of %s: %w", topic, err)
	}
	return oldest, newest, nil
}
