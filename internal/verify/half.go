package verify

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/kafka"
)

// half is one comparison of a look: rows with the records of a topic. Where they exceed the window, both are read
// several times, with a part of the ids and keys in each pass.
type half struct {
	*look
	subject string // the topic, or the consumer
	topic   string
	group   string // of the consumer; empty: of an outbox
	// countRows is a statement about the subject.
	countRows string

	passes, pass uint64
	parts        []part
	facts        []fact
}

// part is a topic-partition: how much of its log was read, and how much that log no longer holds.
type part struct {
	oldest    int64 // the first offset that the log has
	from      int64 // the first one that was read
	firstAt   int64 // no record that was read is older; without one: never
	firstEnd  int64 // where the log ended before the rows were read
	end       int64 // records were read up to here
	isOpen    bool  // an open transaction lies before the log's end, so records behind it were not read
	committed int64 // of a consumer: records below it must be in the inbox; -1: not known
}

func (p part) isCut() bool { return p.oldest > 0 }

func (h *half) measure(ctx context.Context) error {
	if err := h.begin(ctx); err != nil {
		return err
	}
	var rows, records int64
	if err := h.db.QueryRow(ctx, h.countRows, h.subject).Scan(&rows); err != nil {
		return fmt.Errorf("count the rows of %s: %w", h.subject, err)
	}
	for _, p := range h.parts {
		records += p.end - p.from
	}
	h.passes = uint64(1 + max(rows, records)/h.Window)
	h.total += int64(h.passes) * (rows + records)
	return nil
}

func (h *half) eachPass(ctx context.Context, steps ...func(context.Context) error) error {
	for h.pass = 0; h.pass < h.passes; h.pass++ {
		h.facts = nil
		for _, step := range steps {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *half) takes(text string) bool { return maphash.String(seed, text)%h.passes == h.pass }

func (h *half) finding(rule Rule, kind Kind, f fact) Finding {
	return Finding{
		Kind: kind, Rule: rule, Subject: h.subject, EventID: f.id, Type: f.eventType, Key: f.key, Version: f.version,
		Detail: details[rule][kind],
	}
}

func (h *half) suspect(rule Rule, kind Kind, f fact) { h.look.suspect(h.finding(rule, kind, f)) }

// cannot counts a fact that may be such a finding, where nothing shows it.
func (h *half) cannot(rule Rule, kind Kind, f fact, why Reason) {
	if h.judges(h.finding(rule, kind, f)) {
		h.look.cannot(h.subject, why, 1)
	}
}

// A topic that does not exist has no partitions. The hour before Since is read, too: a record may repeat an event that
// is a little older.
func (h *half) begin(ctx context.Context) error {
	return kafka.Ask(ctx, h.Kafka, "find the ends of "+h.topic, func(c kafka.Cluster) error {
		partitions, err := c.Partitions(h.topic)
		h.parts = make([]part, len(partitions))
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			return nil
		}
		committed := make([]int64, len(partitions))
		if err == nil && h.group != "" {
			committed, err = c.Committed(h.group, h.topic, partitions)
		}
		if err != nil {
			return err
		}
		oldest, oldestErr := c.Offsets(h.topic, partitions, sarama.OffsetOldest)
		newest, newestErr := c.Offsets(h.topic, partitions, sarama.OffsetNewest)
		since, sinceErr := oldest, error(nil)
		if !h.Since.IsZero() {
			since, sinceErr = c.Offsets(h.topic, partitions, h.Since.Add(-time.Hour).UnixMilli())
		}
		if err := errors.Join(oldestErr, newestErr, sinceErr); err != nil {
			return err
		}
		for i := range h.parts {
			p := part{oldest: oldest[i], from: max(oldest[i], since[i]), firstAt: never, firstEnd: newest[i], end: newest[i]}
			if since[i] < 0 { // no record is as young
				p.from = p.end
			}
			if p.from > p.oldest {
				p.firstAt = h.Since.Add(-time.Hour).Unix()
			}
			if committed[i] <= p.end { // else it is of a topic that was deleted
				p.committed = committed[i]
			}
			h.parts[i] = p
		}
		return nil
	})
}

func (h *half) readRecords(ctx context.Context, each func(*message.Message, event.Origin)) error {
	if len(h.parts) == 0 {
		return nil
	}
	partitions := make([]int32, len(h.parts))
	for i := range partitions {
		partitions[i] = int32(i)
	}
	return kafka.Ask(ctx, h.Kafka, "read "+h.topic, func(c kafka.Cluster) error {
		ends, err := c.Offsets(h.topic, partitions, sarama.OffsetNewest)
		if err != nil {
			return err
		}
		for i := range h.parts {
			p := &h.parts[i]
			p.end, err = c.Scan(h.topic, int32(i), p.from, ends[i], func(m *message.Message) error {
				h.step()
				origin, _ := event.OriginFrom(m.Context())
				if p.firstAt == never {
					p.firstAt = origin.Time.Unix()
				}
				each(m, origin)
				return nil
			})
			if err != nil {
				return err
			}
			p.isOpen = p.end < ends[i]
		}
		oldest, err := c.Offsets(h.topic, partitions, sarama.OffsetOldest) // now, so that what was deleted since counts
		for i := range oldest {
			h.parts[i].oldest, h.parts[i].from = oldest[i], max(h.parts[i].from, oldest[i])
		}
		return err
	})
}

// hasMoved reports whether a partition was the key's when the topic had fewer partitions.
func (h *half) hasMoved(key string, partition int32) bool {
	for n := int32(len(h.parts)) - 1; n > partition; n-- {
		if kafka.PartitionOf(key, n) == partition {
			return true
		}
	}
	return false
}

const pageRows = 5000

// readPages reads a page at a time: an open transaction would keep a table partition from being dropped. The last
// argument is the size of a page. The others are computed for each page, from the last row before it.
func (l *look) readPages(
	ctx context.Context, what, sql string, args func() []any, scan []any, each func() error,
) error {
	for n := pageRows; n == pageRows; {
		n = 0
		rows, _ := l.db.Query(ctx, sql, append(args(), pageRows)...)
		_, err := pgx.ForEachRow(rows, scan, func() error {
			n++
			return each()
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
	}
	return nil
}

// A record without a valid id has its place instead.
func idOf(e event.Event, o event.Origin) string {
	if event.ValidID(e.ID) != nil {
		return fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)
	}
	return e.ID
}
