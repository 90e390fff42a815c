package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
)

// MaxMetadataBytes is the longest metadata of a caller, as JSON.
const MaxMetadataBytes = 4096

// What is wrong with metadata of a caller.
var (
	ErrMetadataTooLarge = fmt.Errorf("inbox: metadata above %d bytes of JSON", MaxMetadataBytes)
	ErrNotRecorded      = errors.New("inbox: no row of this id in this transaction")
)

const putMetadata = `
update public.inbox set metadata = metadata || jsonb_build_object('caller', $4::jsonb)
where consumer = $1 and event_id = $2 and event_time = $3`

// PutMetadata keeps data of the caller beside the id whose handler tx belongs to, such as what the effect made:
// {"notification_id": "123"}. It is committed with the effect or not at all; a second call replaces the first.
// [Lookup] and "twinbox inbox lookup" show it to operators, so it holds nothing that people wrote. It costs the
// database an update of the row, without a round trip of its own.
//
// Errors: [ErrMetadataTooLarge], [ErrNotRecorded] on another transaction than the handler's own, such as a savepoint,
// and what cannot be JSON; each is [Permanent].
func PutMetadata(ctx context.Context, tx pgx.Tx, metadata map[string]any) error {
	w, is := tx.(*work)
	if !is || w.row == nil {
		return Permanent(ErrNotRecorded)
	}
	encoded, err := encodeMetadata(metadata)
	if err != nil {
		return err
	}
	return Queue(ctx, tx, putMetadata, w.consumer, w.row.id, w.row.place, encoded)
}

// PutMetadata is the function for an id that the caller has recorded with [Inbox.MarkProcessed].
func (in *Inbox) PutMetadata(ctx context.Context, tx pgx.Tx, eventID string, metadata map[string]any) error {
	if err := cloudevent.ValidID(eventID); err != nil {
		return err
	}
	encoded, err := encodeMetadata(metadata)
	if err != nil {
		return err
	}
	return QueueRows(ctx, tx, Permanent(ErrNotRecorded), putMetadata, in.cfg.Consumer, eventID, place(eventID), encoded)
}

func encodeMetadata(metadata map[string]any) (string, error) {
	encoded, err := json.Marshal(metadata)
	switch {
	case err != nil:
		return "", Permanent(fmt.Errorf("encode metadata: %w", err))
	case len(encoded) > MaxMetadataBytes:
		return "", Permanent(ErrMetadataTooLarge)
	}
	return string(encoded), nil
}
