package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/poison"
)

// Record is a dead letter's record, read again. It is good for one transaction.
type Record struct {
	it     *item
	letter Filed
}

// Filed is what a dead letter says of its record beside the message.
type Filed struct {
	Payload    []byte // as it came; what is handled may have been edited
	Remembered bool   // the inbox row of its id was written with the dead letter
	AcceptGap  bool   // an operator goes on without its predecessors
	Force      bool   // also over a jump, and where nothing is known of the id any more
}

// Event is the event that the record holds.
func (r *Record) Event() cloudevent.Event { return r.it.event }

// Refusal is why a record is not handled as it is, with a stable code.
type Refusal struct {
	Code string
	Err  error
}

func (e *Refusal) Error() string { return e.Err.Error() }

// Read makes a record of a dead letter's message, whose context has its origin. A [*Refusal] says that it is no event,
// breaks its contract, or has no handler here.
func (in *Inbox) Read(msg *message.Message, next message.HandlerFunc, letter Filed) (*Record, error) {
	it := &item{waited: true, acceptGap: letter.AcceptGap, force: letter.Force} // no replay waits for what is missing
	if in.deliverer.readItem(it, msg, next); it.invalid == nil {
		in.deliverer.check([]*item{it})
	}
	r := &Record{it, letter}
	switch {
	case it.invalid != nil:
		return r, &Refusal{codeOf(it.invalid), it.invalid}
	case it.ignored:
		return r, &Refusal{CodeNoHandler, errors.New("the consumer handles no events of type " + it.event.Type)}
	}
	return r, nil
}

// Retake is one attempt at a record that was filed, in one transaction.
type Retake struct {
	// Alone says that the record may have ended a process: nothing else runs in this one meanwhile.
	Alone bool
	// Lock locks the dead letter and reads its record.
	Lock func(ctx context.Context, tx pgx.Tx) (*Record, error)
	// Settle settles the dead letter with the outcome: Applied, Duplicate or Stale.
	Settle func(ctx context.Context, tx pgx.Tx, outcome Outcome) error
}

// HandlerError says that an attempt failed because of the event or its handler, and not of the surroundings.
type HandlerError struct {
	Code string // under which the dead letter is filed
	Err  error
}

func (e *HandlerError) Error() string { return e.Err.Error() }
func (e *HandlerError) Unwrap() error { return e.Err }

// Retake handles a record again: it is locked, its id and its place in its key's order are taken, the handler runs and
// the dead letter is settled, all in one transaction. With an error nothing is committed, unless the answer to the
// commit was lost. A [*Refusal] says that it must not run now, a [*HandlerError] that it failed.
func (in *Inbox) Retake(parent context.Context, r Retake) (outcome Outcome, err error) {
	leave, err := poison.Enter(parent, r.Alone)
	if err != nil {
		return Failed, err
	}
	defer leave()
	err = in.deliverer.transact(parent, func(ctx context.Context, w *work) (err error) {
		outcome, err = in.deliverer.retake(ctx, w, r)
		return err
	})
	if err != nil {
		return Failed, blame(err)
	}
	return outcome, nil
}

// blame makes an error that is the event's or its handler's own a [*HandlerError].
func blame(err error) error {
	whose, known := errors.AsType[*itemError](err)
	class, code := failure.Classify(err), codeOf(err)
	atFault := known && whose.item != noItem || code == CodeHandlerTimeout || class == failure.Permanent
	if class != failure.Transient && atFault {
		return &HandlerError{code, err}
	}
	return err
}

// retake is what happens inside the transaction.
func (e *engine) retake(ctx context.Context, w *work, r Retake) (outcome Outcome, err error) {
	record, err := r.Lock(ctx, w)
	if err == nil {
		end := e.cfg.Spans.Process(e.cfg.Consumer, 1, func(int) *cloudevent.Event { return &record.it.event })
		defer func() { end(err) }()
		err = e.retakePlace(ctx, w, record)
	}
	if err == nil {
		err = w.ready(ctx)
	}
	if err != nil {
		return Failed, w.waitedInVain(err)
	}
	it := record.it
	if it.outcome == Applied {
		if err := e.callHandler(ctx, w, 0, it); err != nil {
			return Failed, err
		}
	}
	e.crash("replay_handled")
	return it.outcome, r.Settle(ctx, w, it.outcome)
}

// retakePlace takes the event's id and its place in the order of its key, as for a delivery. The outcome is Applied
// when the handler is to run, Duplicate and Stale when there is nothing left to do. Where neither can be known it
// refuses.
func (e *engine) retakePlace(ctx context.Context, w *work, r *Record) error {
	it := r.it
	if err := e.retakeID(ctx, w, r); err != nil || it.outcome != Applied || !e.cfg.Versioned || it.event.Version == 0 {
		return err
	}
	keys := keysOf([]*item{it})
	rows, _ := w.Query(ctx, selectWatermarks, e.cfg.Consumer, []string{it.event.Key})
	err := eachKey(keys, (*keyState).isAt)(rows)
	if err != nil {
		return fmt.Errorf("read watermark: %w", err)
	}
	switch it.outcome, err = e.order.place(ctx, w, it); {
	case err != nil:
		return err
	case it.outcome == Stale:
		return e.ids.markOutcome(ctx, w, it)
	case it.outcome == Gap:
		reason := it.parkedFor()
		return &Refusal{reason.code, reason.err}
	}
	return e.order.advance(ctx, w, keys)
}

// retakeEntry takes an id that was given up or parked with this very record, and not with another one that has the id
// too and waits itself. The hash stays that of the record that came: its redelivery is a duplicate, also after an edit.
const retakeEntry = `
update public.inbox set metadata = metadata || '{"outcome": "applied"}'
where consumer = $1 and event_id = $2 and event_time = $3 and payload_hash = $4
    and metadata ->> 'outcome' in ('dead', 'parked', 'gap')`

func (e *engine) retakeID(ctx context.Context, w *work, r *Record) error {
	it, came := r.it, sha256.Sum256(r.letter.Payload)
	taken, err := w.Exec(ctx, retakeEntry, e.cfg.Consumer, it.entry.id, it.entry.place, came[:])
	if err != nil {
		return fmt.Errorf("claim inbox row: %w", err)
	}
	if taken.RowsAffected() == 0 {
		err = e.ids.recordNow(ctx, w, it)
	}
	switch {
	case err != nil:
		return err
	case it.outcome == Conflict:
		return &Refusal{CodeConflict, errConflict}
	case it.outcome != Expired:
		return nil
	case !r.letter.Remembered && !r.letter.Force:
		return &Refusal{CodeTooOld, ErrExpired}
	}
	it.outcome = Applied // the inbox has forgotten the id; the dead letter has not, or an operator answers for it
	return nil
}

// Resumer takes up parked events.
type Resumer interface {
	// Resume takes up what waited for an event of the key, which is committed. It comes before the partition's next
	// events, so that they find their key in order.
	Resume(ctx context.Context, key string)
}

// ResumeBy sets what takes up parked events as soon as their gap closes. Without it they wait. Call it before the first
// delivery.
func (in *Inbox) ResumeBy(r Resumer) { in.deliverer.resumer = r }
