package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"example.com/twinbox/engine/fault"
	"example.com/twinbox/engine/kafka/internal/reader"
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
func (w *worker) agree(metadata string) (bool, error) {
	store := w.member.cfg.Positions
	if store == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.member.cfg.RequestTimeout)
	defer cancel()
	if w.next >= 0 && reader.IsTopicID(metadata) {
		next, known, err := store.Position(ctx, w.at.Topic, w.at.Partition)
		if err != nil {
			return false, fmt.Errorf("read position: %w", err)
		}
		if !known || next < w.next {
			if moved, err := w.goBack(next); moved || err != nil {
				return false, err
			}
		}
	}
	w.done = max(w.next, 0)
	if err := store.SetPosition(ctx, w.at.Topic, w.at.Partition, w.done); err != nil {
		return false, fmt.Errorf("store position: %w", err)
	}
	w.stored = w.done
	return true, nil
}

// goBack makes the group go on at an earlier offset, or at the oldest record if that one is gone.
func (w *worker) goBack(next int64) (moved bool, err error) {
	client, err := w.reader.Connected()
	if err != nil {
		return false, err
	}
	oldest, err := client.GetOffset(w.at.Topic, w.at.Partition, sarama.OffsetOldest)
	if err != nil {
		return false, fmt.Errorf("find the oldest record: %w", err)
	}
	from := max(next, oldest)
	if from >= w.next {
		return false, nil
	}
	w.log.Warn("the database is behind the group's offset, as after a restore: reading goes on where the database is",
		"committed_offset", w.next, "from_offset", from)
	if next < from {
		w.log.Error("records that the database may not have seen are not on the log any more",
			"from_offset", next, "to_offset", from-1)
	}
	w.session.ResetOffset(w.at.Topic, w.at.Partition, from, w.knownID())
	return true, nil
}

// note stores how far the partition is handled and marks that offset for the next commit. It returns false if the
// partition has to be read anew. A store that was away is one that may have been restored: what was handled since the
// last offset that it took may be gone, and no row of it says so. That little is read anew as soon as it is back.
func (w *worker) note() bool {
	if w.done == w.stored || w.left.Load() {
		return true
	}
	w.noted = time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, w.member.cfg.RequestTimeout)
	defer cancel()
	next := w.done
	if w.unsure {
		next = w.stored
	}
	kept, err := w.member.cfg.Positions.Advance(ctx, w.at.Topic, w.at.Partition, w.stored, next)
	switch {
	case err != nil:
		w.log.Debug("store position", "error", err)
		w.unsure = true
		return true
	case !kept:
		w.log.Warn("the database went back while the partition was read: it is read anew", "offset", w.stored)
		return false
	case w.unsure:
		w.log.Debug("the database was away: what was handled since its last position is read anew",
			"offset", w.stored, "handled", w.done-w.stored)
		return false
	}
	fault.Here("kafka.stored")
	w.stored = w.done
	w.mark(w.done)
	return true
}

// noteSoon is note unless that was just done: a partition under load does it as often as makes a crash repeat no more
// than a commit interval, since what is stored is committed as often; one at rest with each batch.
func (w *worker) noteSoon() bool {
	if time.Since(w.noted) < w.member.noteEvery() {
		return true
	}
	return w.note()
}

func (m *member) noteEvery() time.Duration { return m.cfg.CommitInterval / 2 }

// notes tells when to note what came last. Without a store it never does.
func (m *member) notes() (tick <-chan time.Time, stop func()) {
	if m.cfg.Positions == nil {
		return nil, func() {}
	}
	ticker := time.NewTicker(m.noteEvery())
	return ticker.C, ticker.Stop
}
