package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox/deadletter"
)

// A replayed dead letter stays as it is.
func (t *transaction) storeDeadLetter(ctx context.Context, it *item, k *key, reason error) error {
	cfg := t.in.cfg
	switch {
	case it.replay != nil && it.outcome == Dead:
		return reason
	case it.replay != nil:
		return refuse(codeOf(reason), reason)
	case it.outcome == Conflict && cfg.OnConflict == ConflictWarn:
		return nil
	}
	l := it.newLetter(reason)
	l.Consumer = cfg.Consumer
	l.Holds = cfg.Order == Strict && l.Remembered // others have no place in their key's order
	isStored, err := deadletter.Insert(ctx, t.tx, l)
	if err != nil || !isStored {
		return err
	}
	it.stored = &l
	if l.Holds {
		k.hold(l.Version)
	}
	if l.Parked() {
		return nil
	}
	return cfg.Host.CopyDeadLetter(ctx, t.tx, l)
}

// newLetter is the item's dead letter.
func (it *item) newLetter(reason error) deadletter.Letter {
	isParked := it.outcome == Gap || it.outcome == Parked
	l := deadletter.Letter{
		EventID: it.letterEventID(), Type: it.event.Type, Version: it.event.Version, Key: it.origin.Key,
		Headers: it.origin.Headers, Payload: it.event.Data, Group: it.origin.Group, Topic: it.origin.Topic,
		Partition: it.origin.Partition, Offset: it.origin.Offset, RecordTime: it.origin.Time,
		Class: string(classify(reason)), Code: codeOf(reason), Error: reason.Error(), Attempts: max(it.attempts, 1),
		FirstFailedAt: it.firstFailedAt, Remembered: it.isEvent && (isParked || it.outcome == Dead),
	}
	if isParked {
		l.Class = deadletter.ClassParked
	}
	if it.origin.Topic == "" {
		l.Key = []byte(it.event.Key)
	}
	if l.FirstFailedAt.IsZero() {
		l.FirstFailedAt = time.Now()
	}
	return l
}

// A record without an id is identified by its place.
func (it *item) letterEventID() string {
	if event.ValidID(it.event.ID) == nil {
		return it.event.ID
	}
	if it.origin.Topic == "" {
		return digest(it.event.Data)
	}
	id := fmt.Sprintf("%s/%d/%d", it.origin.Topic, it.origin.Partition, it.origin.Offset)
	if len(id) > event.MaxIDLength {
		return digest([]byte(id))
	}
	return id
}

func digest(of []byte) string {
	sum := sha256.Sum256(of)
	return "sha256/" + hex.EncodeToString(sum[:])
}
