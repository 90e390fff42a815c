package inbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// Process runs fn in one transaction with the inbox row for eventID and reports what became of it: [Applied], or
// [Duplicate] when the id was processed before, in which case fn does not run and the error is nil. When fn or the
// commit fails, nothing is written, the outcome is [Failed] and the error says why; calling again is always safe. An id
// from before the inbox's memory is [Expired], with [ErrExpired].
//
// Process looks at the id alone: no payload is compared, no version, no dead letter is written. Ids are any text of 1
// to 255 characters, none of them a control character; another one is a [*cloudevent.DecodeError].
func (in *Inbox) Process(ctx context.Context, eventID string, fn func(context.Context, pgx.Tx) error) (Outcome, error) {
	if err := cloudevent.ValidID(eventID); err != nil {
		return Failed, err
	}
	it := &item{entry: bareEntry(eventID), handle: fn}
	err := in.engine.apply(ctx, []*item{it})
	if err == nil && it.outcome == Expired {
		err = ErrExpired
	}
	if whose, known := errors.AsType[*itemError](err); known {
		err = whose.err
	}
	in.deliverer.metrics.messages.WithLabelValues(string(it.outcome)).Inc()
	return it.outcome, err
}

const selectProcessed = `
select exists (select from public.inbox where consumer = $1 and event_id = $2 and event_time = $3)`

// IsProcessed says whether the id is recorded. It is for looking, not for deciding: by the time the caller acts, a
// twin may have committed. To decide, use [Inbox.Process].
func (in *Inbox) IsProcessed(ctx context.Context, tx pgx.Tx, eventID string) (bool, error) {
	var processed bool
	err := tx.QueryRow(ctx, selectProcessed, in.cfg.Consumer, eventID, place(eventID)).Scan(&processed)
	if err != nil {
		return false, fmt.Errorf("read inbox row: %w", err)
	}
	return processed, nil
}

// MarkProcessed records the id in the caller's transaction. It returns [Applied] when the id is new and the caller
// is to go on, [Duplicate] when it must not, and [Expired] with [ErrExpired] when that is not known any more. A
// concurrent twin is waited for.
func (in *Inbox) MarkProcessed(ctx context.Context, tx pgx.Tx, eventID string) (Outcome, error) {
	if err := cloudevent.ValidID(eventID); err != nil {
		return Failed, err
	}
	it := &item{entry: bareEntry(eventID)}
	if err := in.engine.record(ctx, tx, []*item{it}); err != nil {
		return Failed, err
	}
	if w, ok := tx.(*work); ok { // inside another consumer's handler: it wants to know now
		if err := w.ready(ctx); err != nil {
			return Failed, err
		}
	}
	if it.outcome == Expired {
		return Expired, ErrExpired
	}
	return it.outcome, nil
}
