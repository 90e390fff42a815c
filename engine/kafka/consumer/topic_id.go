package consumer

import (
	"errors"
	"maps"
	"slices"
	"time"

	"example.com/twinbox/engine/kafka/internal/reader"
)

// A topic that was deleted and created anew has the old one's name, and offsets that begin at 0 again. A reader that
// goes on at its offset skips that many records, and nothing tells: as soon as there are so many, the offset is a valid
// one. The cluster gives each topic an id, so a partition takes the id when it begins to read, compares it now and
// then, and commits it beside every offset: a member that goes on from there, also after a restart, knows of which
// topic it is.

// errOtherTopic is in an [OffsetError] whose offset is of a topic that is gone.
var errOtherTopic = errors.New("the topic was deleted and created anew")

// identify finds out which topic it is that begins to be read, and whether the committed offset is of that one. It
// returns false when there is nothing to be read: the partition is being let go, or the offset has to be fetched anew.
func (w *worker) identify() bool {
	for {
		same, err := w.compareIDs()
		if err == nil {
			w.progress.Received()
			return same
		}
		w.log.Debug("compare the topic with the offset's", "error", err)
		w.progress.TurnedAway(err)
		if !pauseUntil(w.leaving, w.member.cfg.NackBackoff) {
			return false
		}
	}
}

// pauseUntil waits before something is asked again, and returns false at once when the end has come.
func pauseUntil(ended <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ended:
		return false
	}
}

func (w *worker) compareIDs() (bool, error) {
	var metadata string
	if w.next >= 0 {
		found, err := w.reader.Committed(w.member.cfg.Group, w.at.Topic, w.at.Partition)
		if err != nil {
			return false, err
		}
		if found[w.at.Partition].Offset < 0 {
			return false, nil // the topic, and the offset with it, was deleted since this session began
		}
		metadata = found[w.at.Partition].Metadata
	}
	id, err := w.reader.TopicID(w.at)
	if err != nil {
		return false, err
	}
	if reader.IsTopicID(metadata) && id != "" && metadata != id {
		w.member.stop(w.otherTopic())
		return false, nil
	}
	w.topicID.Store(&id)
	return w.agree(metadata)
}

func (p *partition) otherTopic() error {
	return &OffsetError{
		Group: p.member.cfg.Group, Topic: p.at.Topic, Partition: p.at.Partition, Err: errOtherTopic,
	}
}

// knownID is the id of the topic that is read; empty while it is not known, and with brokers that have none.
func (p *partition) knownID() string {
	if id := p.topicID.Load(); id != nil {
		return *id
	}
	return ""
}

// watchTopics stops the member when a topic is not the one that it began to read. What it committed meanwhile carries
// the old id.
func (m *member) watchTopics(ended <-chan struct{}) {
	ticker := time.NewTicker(m.cfg.LookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.compareTopics()
		case <-ended:
			return
		}
	}
}

func (m *member) compareTopics() {
	m.mu.Lock()
	partitions := slices.Collect(maps.Values(m.partitions))
	m.mu.Unlock()
	compared := make(map[string]bool)
	for _, p := range partitions {
		began := p.knownID()
		if began == "" || compared[p.at.Topic] {
			continue
		}
		now, err := p.reader.TopicID(p.at)
		if err != nil {
			continue // its leader is away, or the topic is: both show elsewhere
		}
		compared[p.at.Topic] = true
		if now != "" && now != began {
			m.stop(p.otherTopic())
		}
	}
}
