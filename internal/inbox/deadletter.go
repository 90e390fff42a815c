package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	_ "example.com/twinbox/internal/failure/pgerrors" // what the database's errors mean
	"example.com/twinbox/internal/inbox/deadletter"
)

// DeadPolicy says what a dead letter means for the later events of its key.
type DeadPolicy string

const (
	// DeadHold parks them behind it until it is replayed or discarded, which keeps the key's order. The default.
	DeadHold DeadPolicy = "hold"
	// DeadPass lets them go on without it: right where events of a key do not build on each other. A versioned consumer
	// then finds a replay of the dead letter stale once a later event has been applied.
	DeadPass DeadPolicy = "pass"
)

var errConflict = errors.New(
	"the id was processed before with another payload; an id is one event, whatever its source")

// newLetter is the item's record on its way to the dead letters, without its failures.
func (it *item) newLetter() *deadletter.Letter {
	l := &deadletter.Letter{
		EventID: it.event.ID, EventType: it.event.Type, Version: it.event.Version,
		Key: it.origin.Key, Payload: it.event.Data, RecordTime: it.origin.Time, Headers: it.origin.Headers,
		Group: it.origin.Group, Topic: it.origin.Topic, Partition: it.origin.Partition, Offset: it.origin.Offset,
	}
	if it.origin.Topic == "" {
		l.Key = []byte(it.event.Key)
	}
	if it.origin.Unreadable != nil {
		l.Payload = it.origin.Damaged
	}
	if l.Headers == nil { // what there is of them is in the message
		l.Headers = cloudevent.MessageHeaders(it.msg)
	}
	if cloudevent.ValidID(it.event.ID) == nil {
		return l
	}
	// No id of its own. Where the record lay names it just as well: the same record lies there when it comes again.
	l.EventID = fmt.Sprintf("%s/%d/%d", it.origin.Topic, it.origin.Partition, it.origin.Offset)
	switch {
	case it.origin.Topic == "":
		l.EventID = digest(l.Payload)
	case len(l.EventID) > cloudevent.MaxIDLength: // the name of a topic may have nearly as much alone
		l.EventID = digest([]byte(l.EventID))
	}
	return l
}

// failures is the item's dead letter to be, with the history of its failures. It is made when it is first asked for:
// nearly every event succeeds and needs none.
func (it *item) failures() *deadletter.Letter {
	if it.letter == nil {
		it.letter = it.newLetter()
	}
	return it.letter
}

func digest(of []byte) string {
	sum := sha256.Sum256(of)
	return "sha256/" + hex.EncodeToString(sum[:])
}

// addFailure adds a failed attempt, with the stable reason: the error's own where it has a method ErrorCode.
func addFailure(l *deadletter.Letter, err error) {
	if l.Attempts == 0 {
		l.FirstFailedAt = time.Now()
	}
	l.Attempts++
	l.Code, l.Class, l.Error = codeOf(err), string(failure.Classify(err)), err.Error()
}

func codeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return CodeHandlerFailed
}

// park files an item that waits for another of its key. Its inbox row stays: a redelivery is a duplicate, and what
// takes a parked record up again knows it by its dead letter.
func (e *engine) park(ctx context.Context, tx pgx.Tx, it *item) error {
	l := it.newLetter()
	addFailure(l, it.parkedFor())
	l.Class, l.Remembered = deadletter.ClassParked, true
	sql, args, err := e.insertion(it, l)
	if err != nil {
		return err
	}
	return Queue(ctx, tx, sql, args...)
}

// insertion is the statement that stores the dead letter, where the event has none already. An id that another event
// has (id_conflict), one that may have been processed and forgotten (too_old) and a record that is no event say nothing
// of their key's order: they never hold it.
func (e *engine) insertion(it *item, l *deadletter.Letter) (sql string, args []any, err error) {
	l.Consumer = e.cfg.Consumer
	l.Holds = it.decoded && l.Remembered && (l.Parked() || e.cfg.OnDead == DeadHold)
	return deadletter.Insertion(*l)
}

// file commits the dead letter, and its copy, together with the inbox row that makes a redelivery a duplicate. It
// reports a twin when the event turns out to be processed, by another owner of the partition: then there is nothing to
// give up.
func (e *engine) file(ctx context.Context, it *item, l *deadletter.Letter) (twin bool, err error) {
	e.crash("giving_up")
	err = e.transact(ctx, func(ctx context.Context, w *work) (err error) {
		l.Remembered = false
		if it.entry.id != "" && it.outcome == Dead {
			if l.Remembered, twin, err = e.ids.take(ctx, w, it); err != nil {
				return err
			}
		}
		if !twin {
			if err := e.insertLetter(ctx, w, it, l); err != nil {
				return err
			}
		}
		if p := it.partition; p.Suspicious() {
			sql, args := p.Forget(it.origin.LastOffset)
			if err := Queue(ctx, w, sql, args...); err != nil {
				return err
			}
		}
		if !twin {
			e.crash("burying")
		}
		return nil
	})
	if err == nil {
		e.crash("buried")
	}
	return twin, err
}

// insertLetter stores the dead letter and its copy.
func (e *engine) insertLetter(ctx context.Context, w *work, it *item, l *deadletter.Letter) error {
	sql, args, err := e.insertion(it, l)
	if err != nil {
		return err
	}
	tag, err := w.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("insert dead letter: %w", err)
	}
	if it.filedBefore = tag.RowsAffected() == 0; it.filedBefore {
		return nil
	}
	return e.cfg.Host.CopyDeadLetter(ctx, w, *l)
}
