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
	event    cloudevent.Event
	id       string
	entry    *entry // nil when the record is no event: then there is no id to remember
	origin   cloudevent.Origin
	payload  []byte
	decoded  bool // it is an event with an id and a key to be trusted
	parked   bool // it waits for another of its key
	attempts int
	first    time.Time
	err      error
}

func (it *item) newFailed() *failed {
	l := &failed{event: it.event, id: it.event.ID, origin: it.origin, payload: it.event.Data, decoded: it.decoded}
	if l.origin.Unreadable != nil {
		l.payload = l.origin.Damaged
	}
	if l.origin.Headers == nil { // what there is of them is in the message
		l.origin.Headers = cloudevent.MessageHeaders(it.msg)
	}
	if cloudevent.ValidID(l.id) == nil {
		e := newEntry(l.event, l.origin)
		e.typ = deadletter.Text(e.typ)
		e.origin.correlationID = deadletter.Text(e.origin.correlationID)
		e.origin.outcome = Dead
		l.entry = &e
		return l
	}
	// No id of its own. Where the record lay names it just as well: the same record lies there when it comes again.
	l.id = fmt.Sprintf("%s/%d/%d", l.origin.Topic, l.origin.Partition, l.origin.Offset)
	switch {
	case l.origin.Topic == "":
		l.id = digest(l.payload)
	case len(l.id) > cloudevent.MaxIDLength: // the name of a topic may have nearly as much alone
		l.id = digest([]byte(l.id))
	}
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

// after adds a failed attempt.
func (l *failed) after(err error) *failed {
	if l.attempts == 0 {
		l.first = time.Now()
	}
	l.attempts++
	l.err = err
	return l
}

// code is the stable reason: the error's own where it has a method ErrorCode.
func (l *failed) code() string { return codeOf(l.err) }

func codeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return CodeHandlerFailed
}

// class is what the error is, and what was decided where no error of the handler led to it.
func (l *failed) class() string {
	if l.parked {
		return deadletter.ClassParked
	}
	return string(failure.Classify(l.err))
}

// deadLetters is the dead_letter table of a consumer.
type deadLetters struct {
	consumer string
	onDead   DeadPolicy
}

// park files the records in order. Their inbox rows stay: a redelivery is a duplicate, and what takes a parked record
// up again knows it by its dead letter.
func (d *deadLetters) park(ctx context.Context, tx pgx.Tx, items []*item) error {
	for _, it := range items {
		l := it.newFailed()
		l.parked = true
		l.after(it.parkedFor())
		sql, args, err := deadletter.Insertion(d.letter(l, true))
		if err == nil {
			err = Queue(ctx, tx, sql, args...)
		}
		if err != nil {
			return fmt.Errorf("insert dead letter: %w", err)
		}
	}
	return nil
}

// insert files the record. It reports false where the event has a dead letter already.
func (d *deadLetters) insert(
	ctx context.Context, tx pgx.Tx, l *failed, remembered bool,
) (deadletter.Letter, bool, error) {
	filed := d.letter(l, remembered)
	sql, args, err := deadletter.Insertion(filed)
	if err != nil {
		return filed, false, err
	}
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return filed, false, fmt.Errorf("insert dead letter: %w", err)
	}
	return filed, tag.RowsAffected() == 1, nil
}

// letter is the record as the table of dead letters keeps it. An id that another event has (id_conflict), one that may
// have been processed and forgotten (too_old) and a record that is no event say nothing of their key's order: they
// never hold it.
func (d *deadLetters) letter(l *failed, remembered bool) deadletter.Letter {
	filed := deadletter.Letter{
		Consumer: d.consumer, EventID: l.id, EventType: l.event.Type, Version: l.event.Version,
		Key: l.origin.Key, Headers: make([]deadletter.Header, len(l.origin.Headers)), Payload: l.payload,
		Group: l.origin.Group, Topic: l.origin.Topic, Partition: l.origin.Partition, Offset: l.origin.Offset,
		RecordTime: l.origin.Time,
		Class:      l.class(), Code: l.code(), Error: l.err.Error(), Attempts: l.attempts, FirstFailedAt: l.first,
		Holds:      l.decoded && remembered && (l.parked || d.onDead == DeadHold),
		Remembered: remembered,
	}
	if l.origin.Topic == "" {
		filed.Key = []byte(l.event.Key)
	}
	for i, h := range l.origin.Headers {
		filed.Headers[i] = deadletter.Header(h)
	}
	return filed
}

// file commits the dead letter together with the inbox row that makes a redelivery a duplicate. It reports a twin when
// the event turns out to be processed, by another owner of the partition: then there is nothing to give up.
func (e *engine) file(ctx context.Context, it *item, record *failed, outcome Outcome) (twin bool, err error) {
	e.crash("giving_up")
	err = e.transact(ctx, func(w *work) error {
		remembered := false
		if record.entry != nil && outcome == Dead {
			if remembered, twin, err = e.ids.take(ctx, w, *record.entry); err != nil {
				return err
			}
			if twin {
				return it.partition.forgetAttempts(ctx, w, it.last())
			}
		}
		letter, fresh, err := e.letters.insert(ctx, w, record, remembered)
		it.filedBefore = !fresh
		if err == nil && fresh {
			err = e.cfg.Host.CopyDeadLetter(ctx, w, letter)
		}
		if err != nil {
			return err
		}
		if err := it.partition.forgetAttempts(ctx, w, it.last()); err != nil {
			return err
		}
		e.crash("burying")
		return nil
	})
	if err == nil {
		e.crash("buried")
	}
	return twin && err == nil, err
}
