package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/deadletter"
	"example.com/twinbox/internal/failure"
	_ "example.com/twinbox/internal/failure/pgerrors" // what the database's errors mean
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

// passes says that a dead letter does not keep back what comes after it.
func (in *Inbox) passes() bool { return in.cfg.OnDead == DeadPass }

var errConflict = errors.New("the id was processed before with another payload")

// letter is a record on its way to the dead letters, with the history of its failures.
type letter struct {
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

func (it *item) letter() *letter {
	l := &letter{event: it.event, id: it.event.ID, origin: it.origin, payload: it.msg.Payload, decoded: it.decoded}
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

func digest(of []byte) string {
	sum := sha256.Sum256(of)
	return "sha256/" + hex.EncodeToString(sum[:])
}

func (l *letter) failed(err error, at time.Time) {
	if l.attempts == 0 {
		l.first = at
	}
	l.attempts++
	l.err = err
}

// code is the stable reason: the error's own where it has a method ErrorCode.
func (l *letter) code() string { return codeOf(l.err) }

func codeOf(err error) string {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		return coded.ErrorCode()
	}
	return CodeHandlerFailed
}

// class is what the error is, and what was decided where no error of the handler led to it.
func (l *letter) class() string {
	if l.parked {
		return deadletter.ClassParked
	}
	return string(failure.Classify(l.err))
}

// giveUp writes the dead letter for as long as it takes: until it is committed the record is not acknowledged, so it
// cannot be lost between the log and the table.
func (in *Inbox) giveUp(it *item, l *letter) error {
	outcome := Dead
	if it.outcome == Conflict || it.outcome == Expired {
		outcome = it.outcome
	}
	it.outcome = Failed
	retry := newRetry(in.cfg)
	for {
		twin, err := in.bury(it, l, outcome)
		switch {
		case err == nil && twin:
			it.outcome = Duplicate
			return nil
		case err == nil:
			it.outcome = outcome
			it.frees = in.cfg.Versioned && in.passes()
			in.metrics.letters.WithLabelValues(l.code()).Inc()
			in.log.ErrorContext(it.ctx, "event given up", "outcome", outcome, "event_id", l.id,
				"event_type", it.event.Type, "correlation_id", it.event.CorrelationID(),
				"code", l.code(), "class", l.class(), "attempts", l.attempts,
				"topic", l.origin.Topic, "partition", l.origin.Partition, "offset", l.origin.Offset, "error", l.err,
				"list", "twinbox dlq list")
			return nil
		case it.ctx.Err() != nil:
			return fmt.Errorf("write dead letter: %w", context.Cause(it.ctx))
		}
		wait := retry.policy.NextBackOff()
		in.log.ErrorContext(it.ctx, "dead letter not written", "event_id", l.id, "retry_in", wait, "error", err)
		if err := in.cfg.Host.Pause(it.ctx, err, wait); err != nil {
			return err
		}
	}
}

// bury commits the dead letter together with the inbox row that makes a redelivery a duplicate. It reports a twin when
// the event turns out to be processed, by another owner of the partition: then there is nothing to give up.
func (in *Inbox) bury(it *item, l *letter, outcome Outcome) (twin bool, err error) {
	ctx, cancel := context.WithTimeout(it.ctx, in.cfg.HandlerTimeout)
	defer cancel()
	in.crash("giving_up")
	err = in.transact(ctx, func(w *work) error {
		remembered := false
		if l.entry != nil && outcome == Dead {
			if remembered, twin, err = in.occupy(ctx, w, *l.entry); err != nil {
				return err
			}
			if twin {
				return it.partition.forgetAttempts(ctx, w, it.last())
			}
		}
		filed, fresh, err := in.file(ctx, w, l, remembered)
		it.again = !fresh
		if err == nil && fresh {
			err = in.cfg.Host.CopyDeadLetter(ctx, w, filed)
		}
		if err != nil {
			return err
		}
		if err := it.partition.forgetAttempts(ctx, w, it.last()); err != nil {
			return err
		}
		in.crash("burying")
		return nil
	})
	if err == nil {
		in.crash("buried")
	}
	return twin && err == nil, err
}

// occupy takes the id's place, or reports that the same event has it already. It does neither where another event has
// the place, or the inbox does not remember so far back: what was refused before its id was looked at may be either.
func (in *Inbox) occupy(ctx context.Context, tx pgx.Tx, e entry) (taken, twin bool, err error) {
	probe := &item{entry: e}
	s, err := in.askOne(ctx, tx, probe)
	if err != nil || s.inserted[e.id] {
		return err == nil, false, err
	}
	hash, err := in.hashOf(ctx, tx, &e)
	return false, err == nil && hash != nil && bytes.Equal(hash, e.hash), err
}

// file writes the letter. It reports false where the event has one already.
func (in *Inbox) file(ctx context.Context, tx pgx.Tx, l *letter, remembered bool) (deadletter.Letter, bool, error) {
	filed := in.filed(l, remembered)
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

// filed is the letter as the table keeps it. An id that another event has (id_conflict), one that may have been
// processed and forgotten (too_old) and a record that is no event say nothing of their key's order: they never hold it.
func (in *Inbox) filed(l *letter, remembered bool) deadletter.Letter {
	filed := deadletter.Letter{
		Consumer: in.cfg.Consumer, EventID: l.id, EventType: l.event.Type, Version: l.event.Version,
		Key: l.origin.Key, Headers: make([]deadletter.Header, len(l.origin.Headers)), Payload: l.payload,
		Group: l.origin.Group, Topic: l.origin.Topic, Partition: l.origin.Partition, Offset: l.origin.Offset,
		RecordTime: l.origin.Time,
		Class:      l.class(), Code: l.code(), Error: l.err.Error(), Attempts: l.attempts, FirstFailedAt: l.first,
		Holds:      l.decoded && remembered && (l.parked || !in.passes()),
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
