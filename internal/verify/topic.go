package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unique"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

// comparison compares the rows of an outbox or inbox with the records of a topic.
type comparison struct {
	*look
	subject    string // the topic, or the consumer
	topic      string
	group      string  // of the consumer; empty: of an outbox
	partitions []int32 // of the topic, from 0
	parts      []part
	facts      []fact
}

// part is a topic-partition, and how much of its log was read.
type part struct {
	oldest    int64 // the first offset that the log has
	from      int64 // the first one that was read
	firstAt   int64 // no record that was read is older; without one: never
	firstEnd  int64 // where the log ended before the rows were read
	end       int64 // records were read up to here
	isOpen    bool  // records behind an open transaction were not read
	committed int64 // of a consumer: records below it must be in the inbox; -1: not known
}

func (p part) isCut() bool { return p.oldest > 0 }

// A topic that does not exist has no partitions. The hour before Since is read, too, for records that repeat an event.
func (c *comparison) readEnds(ctx context.Context) error {
	var records int64
	return kafka.Ask(ctx, c.Kafka, "find the ends of "+c.topic, func(k kafka.Cluster) error {
		partitions, err := k.Partitions(c.topic)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return nil
		}
		c.partitions = partitions
		committed := make([]int64, len(partitions))
		if err == nil && c.group != "" {
			committed, err = k.Committed(c.group, c.topic, partitions)
		}
		if err != nil {
			return err
		}
		oldest, oldestErr := k.Offsets(c.topic, partitions, sarama.OffsetOldest)
		newest, newestErr := k.Offsets(c.topic, partitions, sarama.OffsetNewest)
		since, sinceErr := oldest, error(nil)
		if !c.Since.IsZero() {
			since, sinceErr = k.Offsets(c.topic, partitions, c.Since.Add(-time.Hour).UnixMilli())
		}
		if err := errors.Join(oldestErr, newestErr, sinceErr); err != nil {
			return err
		}
		for i := range partitions {
			p := part{oldest: oldest[i], from: max(oldest[i], since[i]), firstAt: never, firstEnd: newest[i], end: newest[i]}
			if since[i] < 0 { // no record is as young
				p.from = p.end
			}
			if p.from > p.oldest {
				p.firstAt = c.Since.Add(-time.Hour).Unix()
			}
			if committed[i] <= p.end { // else it is of a topic that was deleted
				p.committed = committed[i]
			}
			c.parts = append(c.parts, p)
			records += p.end - p.from
		}
		if most := cmp.Or(c.most, mostRecords); records > most && c.wanted == nil {
			return fmt.Errorf("%d records are more than the %d that fit: leave out older events (--since)", records, most)
		}
		return nil
	})
}

// mostRecords take about 4 GB: 200 bytes for each row, record and key.
const mostRecords = 10_000_000

// readRecords calls each for every record, with the error of an unreadable one.
func (c *comparison) readRecords(ctx context.Context, each func(fact, event.Event, *message.Message, error)) error {
	if len(c.parts) == 0 {
		return nil
	}
	return kafka.Ask(ctx, c.Kafka, "read "+c.topic, func(k kafka.Cluster) error {
		ends, err := k.Offsets(c.topic, c.partitions, sarama.OffsetNewest)
		if err != nil {
			return err
		}
		for i := range c.parts {
			p := &c.parts[i]
			p.end, err = k.Scan(c.topic, int32(i), p.from, ends[i], func(m *message.Message) error {
				origin, _ := event.OriginFrom(m.Context())
				if p.firstAt == never {
					p.firstAt = origin.Time.Unix()
				}
				e, err := event.FromMessage(m)
				each(c.recordOf(e, origin), e, m, err)
				return nil
			})
			if err != nil {
				return err
			}
			p.isOpen = p.end < ends[i]
		}
		oldest, err := k.Offsets(c.topic, c.partitions, sarama.OffsetOldest) // again: records may be gone since
		for i := range oldest {
			c.parts[i].oldest, c.parts[i].from = oldest[i], max(c.parts[i].from, oldest[i])
		}
		return err
	})
}

// A record without a valid id has its place instead, like its dead letter.
func (c *comparison) recordOf(e event.Event, o event.Origin) fact {
	id := e.ID
	if event.ValidID(id) != nil {
		id = fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)
	}
	return fact{
		side: record, id: id, key: e.Key, eventType: unique.Make(e.Type).Value(), version: e.Version,
		place: place{o.Offset, o.Partition}, at: min(addedAt("", o.Time), addedAt(id, e.Time)), isOld: e.Time.Before(c.Since),
	}
}

// mayHave reports whether a partition is the key's, or was when the topic had fewer partitions.
func (c *comparison) mayHave(key string, partition int32) bool {
	for n := int32(len(c.parts)); n > partition; n-- {
		if kafka.PartitionOf(key, n) == partition {
			return true
		}
	}
	return false
}

// find adds a suspect. With a reason why it cannot be judged, it counts it as not verifiable instead.
func (c *comparison) find(rule Rule, kind Kind, f fact, unless Reason) {
	found := Finding{
		Kind: kind, Rule: rule, Subject: c.subject, EventID: f.id, Type: f.eventType, Key: f.key, Version: f.version,
		Detail: details[rule][kind],
	}
	switch {
	case unless == "":
		c.suspect(found)
	case c.judges(found):
		c.cannot(c.subject, unless, 1)
	}
}

// add leaves out facts that a further look does not need.
func (c *comparison) add(f fact) {
	if c.read++; c.read%1000 == 0 && c.Progress != nil {
		c.Progress(c.read)
	}
	if c.wanted == nil || c.wanted[f.id] || c.wanted[f.key] {
		c.facts = append(c.facts, f)
	}
}

func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

const pageRows = 5000

// readPages reads a page at a time: an open transaction would keep a table partition from being dropped.
func (l *look) readPages(ctx context.Context, what, sql string, args func() []any, scan []any, each func()) error {
	for n := pageRows; n == pageRows; {
		n = 0
		err := l.readRows(ctx, what, sql, append(args(), pageRows), scan, func() error {
			n++
			each()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
