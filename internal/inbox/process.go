package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/event"
)

// Process runs fn in one transaction with the id. It returns [Duplicate] without fn for a processed id, and [Expired]
// with [ErrExpired] for one that may be forgotten. When fn or the commit fails, nothing is written and the outcome is
// [Failed]; call again.
//
// It compares no payload and no version, does not retry, and writes no dead letter. For ids see [event.ValidID].
func (in *Inbox) Process(
	ctx context.Context, id string, fn func(context.Context, pgx.Tx) error,
) (outcome Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.HandlerTimeout)
	defer cancel()
	err = pgx.BeginTxFunc(ctx, in.cfg.Pool, readCommitted, func(begun pgx.Tx) error {
		tx := &handlerTx{Tx: begun, consumer: in.cfg.Consumer, eventID: id}
		if outcome, err = in.MarkProcessed(ctx, tx, id); err != nil || outcome != Applied {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return tx.flush(ctx)
	})
	if err != nil && outcome != Expired {
		outcome = Failed
	}
	in.metrics.messages.WithLabelValues(string(outcome)).Inc()
	return outcome, err
}

// MarkProcessed records the id in the caller's transaction. It returns [Applied], [Duplicate], or [Expired]
// with [ErrExpired]. It waits for another transaction that records the id.
func (in *Inbox) MarkProcessed(ctx context.Context, tx pgx.Tx, id string) (Outcome, error) {
	if err := event.ValidID(id); err != nil {
		return Failed, err
	}
	it := &item{event: event.Event{ID: id, Time: time.Now()}, isEvent: true, hash: []byte{}}
	it.outcome = Applied // unless the id is known
	ids, batch := collectIDs(in.cfg.Consumer, []*item{it}), &pgx.Batch{}
	ids.insert(batch)
	err := tx.SendBatch(ctx, batch).Close()
	if err == nil {
		err = ids.compare(ctx, tx)
	}
	if err != nil {
		return Failed, fmt.Errorf("insert inbox row: %w", err)
	}
	switch it.outcome {
	case Applied:
		return Applied, nil
	case Expired:
		return Expired, ErrExpired
	}
	return Duplicate, nil
}

const selectProcessed = `
select exists (select from public.inbox where consumer = $1 and event_id = $2 and event_time = $3)`

// IsProcessed reports whether the id is recorded. To decide, use [Inbox.Process]: another transaction may commit first.
func (in *Inbox) IsProcessed(ctx context.Context, tx pgx.Tx, id string) (processed bool, err error) {
	err = tx.QueryRow(ctx, selectProcessed, in.cfg.Consumer, id, idTime(id)).Scan(&processed)
	if err != nil {
		return false, fmt.Errorf("read inbox row: %w", err)
	}
	return processed, nil
}
