package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox/poison"
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
	it := &item{entry: bareEntry(eventID), handle: fn, partition: new(poison.Assignment)}
	err := in.deliverer.apply(ctx, []*item{it}, 0)
	if err == nil && it.outcome == Expired {
		err = ErrExpired
	}
	if whose, known := errors.AsType[*itemError](err); known && whose.item != noItem {
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
	if err := in.deliverer.ids.recordNow(ctx, tx, it); err != nil {
		return Failed, err
	}
	if it.outcome == Expired {
		return Expired, ErrExpired
	}
	return it.outcome, nil
}

// MaxMetadataBytes is the longest metadata of a caller, as JSON.
const MaxMetadataBytes = 4096

// What is wrong with metadata of a caller.
var (
	ErrMetadataTooLarge = fmt.Errorf("inbox: metadata above %d bytes of JSON", MaxMetadataBytes)
	ErrNotRecorded      = errors.New("inbox: no row of this id in this transaction")
)

// PutMetadata keeps data of the caller beside the id whose handler tx belongs to, such as what the effect made:
// {"notification_id": "123"}. It is committed with the effect or not at all; a second call replaces the first.
// [Lookup] shows it to operators, so it holds nothing that people wrote. It costs the
// database an update of the row, without a round trip of its own.
//
// Errors: [ErrMetadataTooLarge], [ErrNotRecorded] on another transaction than the handler's own, such as a savepoint,
// and what cannot be JSON; each is [Permanent].
func PutMetadata(ctx context.Context, tx pgx.Tx, metadata map[string]any) error {
	w, is := tx.(*work)
	if !is || w.row == nil {
		return Permanent(ErrNotRecorded)
	}
	return putMetadata(ctx, tx, nil, w.consumer, w.row.id, metadata)
}

// PutMetadata is the function for an id that the caller has recorded with [Inbox.MarkProcessed].
func (in *Inbox) PutMetadata(ctx context.Context, tx pgx.Tx, eventID string, metadata map[string]any) error {
	if err := cloudevent.ValidID(eventID); err != nil {
		return err
	}
	return putMetadata(ctx, tx, Permanent(ErrNotRecorded), in.cfg.Consumer, eventID, metadata)
}

const updateMetadata = `
update public.inbox set metadata = metadata || jsonb_build_object('caller', $4::jsonb)
where consumer = $1 and event_id = $2 and event_time = $3`

func putMetadata(ctx context.Context, tx pgx.Tx, none error, consumer, id string, metadata map[string]any) error {
	encoded, err := json.Marshal(metadata)
	switch {
	case err != nil:
		return Permanent(fmt.Errorf("encode metadata: %w", err))
	case len(encoded) > MaxMetadataBytes:
		return Permanent(ErrMetadataTooLarge)
	}
	return QueueRows(ctx, tx, none, updateMetadata, consumer, id, place(id), string(encoded))
}
