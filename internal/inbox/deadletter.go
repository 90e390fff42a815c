package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/failure"
)

var errConflict = errors.New("the id was processed before with another payload")

var errDied = errors.New("the process ended each time it handled the record")

// letter is a record on its way to the dead letters, with the history of its failures.
type letter struct {
	event    cloudevent.Event
	id       string
	entry    *entry // nil when the record is no event: then there is no id to remember
	origin   cloudevent.Origin
	payload  []byte
	state    string
	attempts int
	first    time.Time
	err      error
}

const (
	stateDead   = "dead"
	stateParked = "parked"
)

func (it *item) letter() *letter {
	l := &letter{event: it.event, id: it.event.ID, origin: it.origin, payload: it.msg.Payload, state: stateDead}
	if cloudevent.ValidID(l.id) == nil {
		e := newEntry(l.event, l.origin)
		e.typ = text(e.typ)
		e.origin.CorrelationID = text(e.origin.CorrelationID)
		e.origin.Outcome = Dead
		l.entry = &e
		return l
	}
	// No id of its own. Where the record lay names it just as well: the same record lies there when it comes again.
	l.id = fmt.Sprintf("%s/%d/%d", l.origin.Topic, l.origin.Partition, l.origin.Offset)
	if l.origin.Topic == "" {
		sum := sha256.Sum256(l.payload)
		l.id = "sha256/" + hex.EncodeToString(sum[:])
	}
	return l
}

func (l *letter) failed(err error, at time.Time) {
	if l.attempts == 0 {
		l.first = at
	}
	l.attempts++
	l.err = err
}

// code is the stable reason: the error's own where it has a method ErrorCode.
func (l *letter) code() string {
	var coded interface{ ErrorCode() string }
	if errors.As(l.err, &coded) {
		return coded.ErrorCode()
	}
	return CodeHandlerFailed
}

// class is what the error is, and what was decided where no error of the handler led to it.
func (l *letter) class() string {
	if l.state == stateParked {
		return stateParked
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
			in.metrics.letters.WithLabelValues(l.code()).Inc()
			in.log.ErrorContext(it.ctx, "event given up", "outcome", outcome, "event_id", l.id,
				"event_type", it.event.Type, "code", l.code(), "class", l.class(), "attempts", l.attempts,
				"topic", l.origin.Topic, "partition", l.origin.Partition, "offset", l.origin.Offset, "error", l.err)
			return nil
		case it.ctx.Err() != nil:
			return fmt.Errorf("write dead letter: %w", context.Cause(it.ctx))
		}
		wait := retry.policy.NextBackOff()
		in.log.ErrorContext(it.ctx, "dead letter not written", "event_id", l.id, "retry_in", wait, "error", err)
		if err := in.again(it.ctx, err, wait); err != nil {
			return err
		}
	}
}

// bury commits the dead letter together with the inbox row that makes a redelivery a duplicate. It reports a twin when
// the event turns out to be processed, by another owner of the partition: then there is nothing to give up.
func (in *Inbox) bury(it *item, l *letter, outcome Outcome) (twin bool, err error) {
	ctx, cancel := context.WithTimeout(it.ctx, in.cfg.HandlerTimeout)
	defer cancel()
	err = in.transact(ctx, func(w *work) error {
		if l.entry != nil && outcome == Dead {
			if twin, err = in.occupy(ctx, w, *l.entry); err != nil || twin {
				return err
			}
		}
		if err := in.file(ctx, w, l); err != nil {
			return err
		}
		if err := in.forgive(ctx, w, []*item{it}); err != nil {
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

// occupy takes the id's place and reports whether the same event has it already.
func (in *Inbox) occupy(ctx context.Context, tx pgx.Tx, e entry) (bool, error) {
	probe := &item{entry: e}
	s, err := in.askOne(ctx, tx, probe)
	if err != nil || s.inserted[e.id] {
		return false, err
	}
	err = in.askHash(ctx, tx, probe, s)
	return err == nil && bytes.Equal(s.hashes[e.id], e.hash) && s.hashes[e.id] != nil, err
}

// A second dead letter of one event would be the same record again, after a crash between commit and offset.
const insertLetter = `
insert into public.dead_letter (consumer, event_id, event_type, key, version, headers, payload, topic, partition,
    record_offset, record_time, state, class, code, error, attempts, first_failed_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
on conflict do nothing`

// file queues the letter.
func (in *Inbox) file(ctx context.Context, tx pgx.Tx, l *letter) error {
	headers, err := encodeHeaders(l.origin.Headers)
	if err != nil {
		return err
	}
	key := l.origin.Key
	if key == nil {
		key = []byte(l.event.Subject)
	}
	var at *time.Time
	if !l.origin.Time.IsZero() {
		at = &l.origin.Time
	}
	err = Queue(ctx, tx, insertLetter, in.cfg.Consumer, l.id, text(l.event.Type), key, l.event.Version, headers,
		notNil(l.payload), l.origin.Topic, l.origin.Partition, l.origin.Offset, at, l.state, l.class(), l.code(),
		text(l.err.Error()), l.attempts, l.first)
	if err != nil {
		return fmt.Errorf("insert dead letter: %w", err)
	}
	return nil
}

// encodeHeaders keeps order, duplicates and bytes: JSON encodes a []byte as base64.
func encodeHeaders(headers []cloudevent.Header) ([]byte, error) {
	pairs := make([][2]any, len(headers))
	for i, h := range headers {
		pairs[i] = [2]any{text(h.Name), h.Value}
	}
	encoded, err := json.Marshal(pairs)
	if err != nil {
		return nil, fmt.Errorf("encode record headers: %w", err)
	}
	return encoded, nil
}

// text makes foreign bytes storable: PostgreSQL refuses NUL and invalid UTF-8, and a dead letter must not fail on
// the very thing that made the record die.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
