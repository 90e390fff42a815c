package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/fault"
	"example.com/twinbox/internal/kafka/internal/reader"
)

// Positions is a store that keeps, beside the effects of the handler, how far each partition is read. An offset is
// committed when it is stored there, so the store is behind the group only if it was restored from an earlier state:
// then its effects went back, too, and reading goes on where the store is. Records that come again because of that are
// the handler's to recognise.
//
// An offset that a member committed is compared with the store's when a partition begins to be read. One that an
// operator's tool committed is taken over and stored.
type Positions interface {
	// Position is the offset of the next record; false if the store knows none.
	Position(ctx context.Context, topic string, partition int32) (next int64, known bool, err error)
	// SetPosition stores where the reading begins, over any stored position.
	SetPosition(ctx context.Context, topic string, partition int32, next int64) error
	// Advance stores how far it came since from was stored. It never moves a position back, and does nothing if the store
	// is not as far as from: then it reports false.
	Advance(ctx context.Context, topic string, partition int32, from, next int64) (kept bool, err error)
}

// agree compares the offset at which the group goes on with the store's. It returns false if reading has to begin at
// another one, with a new session.
func (p *partition) agree(metadata string) (bool, error) {
	store := p.member.cfg.Positions
	if store == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.member.cfg.RequestTimeout)
	defer cancel()
	begin := p.claim.InitialOffset()
	if begin >= 0 && reader.IsTopicID(metadata) {
		next, known, err := store.Position(ctx, p.at.Topic, p.at.Partition)
		if err != nil {
			return false, fmt.Errorf("read position: %w", err)
		}
		if !known || next < begin {
			if moved, err := p.goBack(next); moved || err != nil {
				return false, err
			}
		}
	}
	p.done = max(begin, 0)
	if err := store.SetPosition(ctx, p.at.Topic, p.at.Partition, p.done); err != nil {
		return false, fmt.Errorf("store position: %w", err)
	}
	p.stored = p.done
	return true, nil
}

// goBack makes the group go on at an earlier offset, or at the oldest record if that one is gone.
func (p *partition) goBack(next int64) (moved bool, err error) {
	client, err := p.reader.Connected()
	if err != nil {
		return false, err
	}
	oldest, err := client.GetOffset(p.at.Topic, p.at.Partition, sarama.OffsetOldest)
	if err != nil {
		return false, fmt.Errorf("find the oldest record: %w", err)
	}
	from := max(next, oldest)
	if from >= p.claim.InitialOffset() {
		return false, nil
	}
	p.log.Warn("the database is behind the group's offset, as after a restore: reading goes on where the database is",
		"committed_offset", p.claim.InitialOffset(), "from_offset", from)
	if next < from {
		p.log.Error("records that the database may not have seen are not on the log any more",
			"from_offset", next, "to_offset", from-1)
	}
	p.session.ResetOffset(p.at.Topic, p.at.Partition, from, *p.topicID.Load())
	return true, nil
}

// note stores how far the partition is handled and marks that offset for the next commit. It returns false if the
// partition has to be read anew. A store that was away is one that may have been restored: what was handled since the
// last offset that it took may be gone, and no row of it says so. That little is read anew as soon as it is back.
func (p *partition) note() bool {
	if p.done == p.stored || p.left.Load() {
		return true
	}
	p.noted = time.Now()
	ctx, cancel := context.WithTimeout(p.ctx, p.member.cfg.RequestTimeout)
	defer cancel()
	next := p.done
	if p.unsure {
		next = p.stored
	}
	kept, err := p.member.cfg.Positions.Advance(ctx, p.at.Topic, p.at.Partition, p.stored, next)
	switch {
	case err != nil:
		p.log.Debug("store position", "error", err)
		p.unsure = true
		return true
	case !kept:
		p.log.Warn("the database went back while the partition was read: it is read anew", "offset", p.stored)
		return false
	case p.unsure:
		p.log.Debug("the database was away: what was handled since its last position is read anew",
			"offset", p.stored, "handled", p.done-p.stored)
		return false
	}
	fault.Here("kafka.stored")
	p.stored = p.done
	p.mark(p.done)
	return true
}

// A topic that was deleted and created anew has the old one's name, and offsets that begin at 0 again. A reader that
// goes on at its offset skips that many records, and nothing tells: as soon as there are so many, the offset is a valid
// one. The cluster gives each topic an id, so a partition takes the id when it begins to read, compares it now and
// then, and commits it beside every offset: a member that goes on from there, also after a restart, knows of which
// topic it is.

// errOtherTopic is in an [ErrOffsetGone] whose offset is of a topic that is gone.
var errOtherTopic = errors.New("the topic was deleted and created anew")

// identify finds out which topic it is that begins to be read, and whether the committed offset is of that one. It
// returns false when there is nothing to be read: the partition is being let go, or the offset has to be fetched anew.
func (p *partition) identify() bool {
	for {
		same, err := p.compareIDs()
		if err == nil {
			p.progress.Refused(nil)
			return same
		}
		p.log.Debug("compare the topic with the offset's", "error", err)
		p.progress.Refused(err)
		if failure.Sleep(p.leaving, p.member.cfg.NackBackoff) != nil {
			return false
		}
	}
}

func (p *partition) compareIDs() (bool, error) {
	var metadata string
	if p.claim.InitialOffset() >= 0 {
		found, err := p.reader.Committed(p.member.cfg.Group, p.at.Topic, p.at.Partition)
		if err != nil {
			return false, err
		}
		if found[0].Offset < 0 {
			return false, nil // the topic, and the offset with it, was deleted since this session began
		}
		metadata = found[0].Metadata
	}
	id, err := p.reader.TopicID(p.at)
	if err != nil {
		return false, err
	}
	if reader.IsTopicID(metadata) && id != "" && metadata != id {
		p.stopForOtherTopic()
		return false, nil
	}
	p.topicID.Store(&id)
	return p.agree(metadata)
}

func (p *partition) stopForOtherTopic() {
	p.member.stop(p.member.reasonAt(p.at.Topic, p.at.Partition, fmt.Errorf("%w: %w", ErrOffsetGone, errOtherTopic)))
}

// watchTopic stops the member when its topic is not the one that it began to read. What it committed meanwhile carries
// the old id.
func (c *Consumer) watchTopic(connected context.Context) {
	for failure.Sleep(connected, c.cfg.LookEvery) == nil {
		c.mu.Lock()
		partitions := slices.Collect(maps.Values(c.partitions))
		c.mu.Unlock()
		for _, p := range partitions {
			began := *p.topicID.Load()
			if began == "" {
				continue
			}
			now, err := p.reader.TopicID(p.at)
			if err != nil {
				continue // its leader is away, or the topic is: both show elsewhere
			}
			if now != "" && now != began {
				p.stopForOtherTopic()
			}
			break // it is one topic
		}
	}
}
