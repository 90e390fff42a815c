package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/failure"
	_ "example.com/twinbox/engine/failure/pgerrors" // what the database's errors mean
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

var errConflict = errors.New("the id was processed before with another payload")

// failed is a record on its way to the dead letters, with the history of its failures.
type failed struct {
	letter  deadletter.Letter
	entry   *entry // nil when the record is no event: then there is no id to remember
	decoded bool   // it is an event with an id and a key to be trusted
	err     error
}

func (it *item) newFailed() *failed {
	l := &failed{decoded: it.decoded, letter: deadletter.Letter{
		EventID: it.event.ID, EventType: it.event.Type, Version: it.event.Version,
		Key: it.origin.Key, Payload: it.event.Data, RecordTime: it.origin.Time,
		Group: it.origin.Group, Topic: it.origin.Topic, Partition: it.origin.Partition, Offset: it.origin.Offset,
	}}
	if it.origin.Topic == "" {
		l.letter.Key = []byte(it.event.Key)
	}
	if it.origin.Unreadable != nil {
		l.letter.Payload = it.origin.Damaged
	}
	if l.letter.Headers = it.origin.Headers; l.letter.Headers == nil { // what there is of them is in the message
		l.letter.Headers = cloudevent.MessageHeaders(it.msg)
	}
	if cloudevent.ValidID(it.event.ID) == nil {
		e := newEntry(it.event, it.origin)
		e.typ = deadletter.Text(e.typ)
		e.origin.correlationID = deadletter.Text(e.origin.correlationID)
		e.origin.outcome = Dead
		l.entry = &e
		return l
	}
	// No id of its own. Where the record lay names it just as well: the same record lies there when it comes again.
	id := fmt.Sprintf("%s/%d/%d", it.origin.Topic, it.origin.Partition, it.origin.Offset)
	switch {
	case it.origin.Topic == "":
		id = digest(l.letter.Payload)
	case len(id) > cloudevent.MaxIDLength: // the name of a topic may have nearly as much alone
		id = digest([]byte(id))
	}
	l.letter.EventID = id
	return l
}

// failures is the item's record, made when it is first asked for: nearly every event succeeds and needs none.
func (it *item) failures() *failed {
	if it.failed == nil {
		it.failed = it.newFailed()
	}
	return it.failed
}

func digest(of []byte) string {
	sum := sha256.Sum256(of)
	return "sha256/" + hex.EncodeToString(sum[:])
}

// after adds a failed attempt, with the stable reason: the error's own where it has a method ErrorCode.
func (l *failed) after(err error) *failed {
	if l.letter.Attempts == 0 {
		l.letter.FirstFailedAt = time.Now()
	}
	l.letter.Attempts++
	l.letter.Code, l.letter.Class, l.letter.Error = codeOf(err), string(failure.Classify(err)), err.Error()
	l.err = err
	return l
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
	l := it.newFailed().after(it.parkedFor())
	l.letter.Class = deadletter.ClassParked
	sql, args, err := deadletter.Insertion(e.letter(l, true))
	if err != nil {
		return fmt.Errorf("insert dead letter: %w", err)
	}
	return Queue(ctx, tx, sql, args...)
}

// letter is the record as the table of dead letters keeps it. An id that another event has (id_conflict), one that may
// have been processed and forgotten (too_old) and a record that is no event say nothing of their key's order: they
// never hold it.
func (e *engine) letter(l *failed, remembered bool) deadletter.Letter {
	filed := l.letter
	filed.Consumer, filed.Remembered = e.cfg.Consumer, remembered
	filed.Holds = l.decoded && remembered && (filed.Parked() || e.cfg.OnDead == DeadHold)
	return filed
}

// file commits the dead letter together with the inbox row that makes a redelivery a duplicate. It reports a twin when
// the event turns out to be processed, by another owner of the partition: then there is nothing to give up.
func (e *engine) file(ctx context.Context, it *item, record *failed, outcome Outcome) (twin bool, err error) {
	e.crash("giving_up")
	err = e.transact(ctx, func(ctx context.Context, w *work) error {
		remembered := false
		if record.entry != nil && outcome == Dead {
			if remembered, twin, err = e.ids.take(ctx, w, *record.entry); err != nil {
				return err
			}
		}
		if !twin {
			if err := e.insertLetter(ctx, w, it, e.letter(record, remembered)); err != nil {
				return err
			}
		}
		if p := it.partition; p.Suspicious() {
			sql, args := p.Forget(it.last())
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

// insertLetter stores the dead letter and its copy, where the event has none already.
func (e *engine) insertLetter(ctx context.Context, w *work, it *item, letter deadletter.Letter) error {
	sql, args, err := deadletter.Insertion(letter)
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
	return e.cfg.Host.CopyDeadLetter(ctx, w, letter)
}
