package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/inbox"
)

// readRecord makes a record of the dead letter again: what came, or what an operator put in its place, and where it
// lay. An edited record that came without a key takes the one it names.
func (r *run) readRecord(ctx context.Context, l deadletter.Letter) (*inbox.Record, error) {
	if l.Code == string(cloudevent.CodeUnreadable) && l.Edited == nil {
		return nil, &inbox.Refusal{
			Code: l.Code, Err: errors.New("a damaged batch is no record: edit in what it held, headers and payload"),
		}
	}
	stored, payload := l.Current()
	headers := make([]cloudevent.Header, len(stored))
	for i, h := range stored {
		headers[i] = cloudevent.Header(h)
	}
	msg := cloudevent.RecordMessage(l.Key, headers, payload)
	if len(l.Key) == 0 && l.Edited != nil && msg.Metadata[cloudevent.HeaderSubject] != "" {
		msg.Metadata[cloudevent.KeyMetadata] = msg.Metadata[cloudevent.HeaderSubject]
	}
	msg.SetContext(cloudevent.WithOrigin(ctx, cloudevent.Origin{
		Group: l.Group, Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Time: l.RecordedAt(),
		Key: l.Key, Headers: headers, LastOffset: l.Offset,
	}))
	record, err := r.cfg.Inbox.Read(msg, r.cfg.Handler, inbox.Filed{
		Payload: l.Payload, Remembered: l.Remembered, AcceptGap: r.acceptGap, Force: r.force,
	})
	switch {
	case err != nil:
		return record, err
	case l.Remembered && record.Event().ID != l.EventID:
		return record, &inbox.Refusal{Code: CodeIDChanged, Err: errors.New("the edited record carries another event id")}
	case l.Replays >= r.cfg.MaxReplays && !r.force:
		return record, &inbox.Refusal{Code: CodeReplayLimit, Err: fmt.Errorf("%d replays failed", l.Replays)}
	}
	return record, nil
}

// Letters that hold nothing keep no order among themselves, but they do behind one that holds their key.
const selectEarlier = `
select min(id) from public.dead_letter
where consumer = $1 and key_start = $2 and state = 'waiting' and holds and (version, id) < ($3, $4)`

// admit refuses what must not run now. An earlier dead letter may have been parked while this one was waited for: the
// statement comes after the lock, so that it sees what the lock's last holder has committed.
func (r *run) admit(ctx context.Context, tx pgx.Tx, l deadletter.Letter) (*inbox.Record, error) {
	record, err := r.readRecord(ctx, l)
	if err != nil {
		return nil, err
	}
	behind := r.refuseBehind(ctx, tx, []byte(record.Event().Key), l)
	if _, is := errors.AsType[*inbox.Refusal](behind); !is {
		return record, behind
	}
	next, err := r.next(ctx, tx, 1)
	if err == nil && len(next) == 1 && next[0].ID != l.ID {
		return nil, errGone // it was parked meanwhile and is picked: it comes first
	}
	return nil, errors.Join(err, behind)
}

// refuseBehind refuses a dead letter while an earlier one holds the key.
func (r *run) refuseBehind(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, key []byte, l deadletter.Letter,
) error {
	var earlier *int64
	if err := q.QueryRow(ctx, selectEarlier, l.Consumer, key, l.Version, l.ID).Scan(&earlier); err != nil {
		return fmt.Errorf("look for earlier dead letters: %w", err)
	}
	if earlier == nil {
		return nil
	}
	return &inbox.Refusal{Code: CodeBehind, Err: fmt.Errorf("dead letter %d of its key comes first", *earlier)}
}
