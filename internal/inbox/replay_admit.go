package inbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/cloudevent"
	"example.com/twinbox/internal/deadletter"
)

// read makes a delivery of the letter again: the record that came, or what an operator put in its place, and where it
// lay. An edited record that came without a key takes the one it names.
func (r *replay) read(ctx context.Context, l deadletter.Letter) (*item, error) {
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
	// No replay waits for what is missing.
	it := &item{waited: true, accepts: r.options.AcceptGap, forced: r.options.Force}
	r.in.read(it, msg, r.in.cfg.Handler)
	switch {
	case l.Code == string(cloudevent.CodeUnreadable) && l.Edited == nil:
		return it, &refusal{l.Code, errors.New("a damaged batch is no record: edit in what it held, headers and payload")}
	case it.wrong != nil:
		return it, &refusal{(&letter{err: it.wrong}).code(), it.wrong}
	case it.ignored:
		return it, &refusal{CodeNoHandler, errors.New("the consumer handles no events of type " + it.event.Type)}
	case l.Remembered && it.event.ID != l.EventID:
		return it, &refusal{CodeIDChanged, errors.New("the edited record carries another event id")}
	case l.Replays >= r.in.cfg.MaxReplays && !r.options.Force:
		return it, &refusal{CodeReplayLimit, fmt.Errorf("%d replays failed", l.Replays)}
	}
	return it, nil
}

// Letters that hold nothing keep no order among themselves, but they do behind one that holds their key.
const selectEarlier = `
select min(id) from public.dead_letter
where consumer = $1 and key_start = $2 and state = 'waiting' and holds and (version, id) < ($3, $4)`

// admit refuses what must not run now. An earlier letter may have been parked while this one was waited for: the
// statement comes after the lock, so that it sees what whoever held the lock has committed.
func (r *replay) admit(ctx context.Context, tx pgx.Tx, l deadletter.Letter) (*item, error) {
	it, err := r.read(ctx, l)
	if err != nil {
		return it, err
	}
	var earlier *int64
	key := []byte(it.event.Key)
	if err := tx.QueryRow(ctx, selectEarlier, l.Consumer, key, l.Version, l.ID).Scan(&earlier); err != nil {
		return it, fmt.Errorf("look for earlier dead letters: %w", err)
	}
	if earlier == nil {
		return it, nil
	}
	next, err := r.peek(ctx, tx, 1)
	if err == nil && len(next) == 1 && next[0].ID != l.ID {
		return it, errGone // it was parked meanwhile and is picked: it comes first
	}
	return it, errors.Join(err, &refusal{CodeBehind, fmt.Errorf("dead letter %d of its key comes first", *earlier)})
}

// rehearse says whether the letter would be tried.
func (r *replay) rehearse(ctx context.Context, l deadletter.Letter, done *Replayed) error {
	done.Outcome = ReplayWould
	_, err := r.read(ctx, l)
	if err == nil && !bytes.Equal(r.key, l.Key) { // what comes after another picked letter has that one before it
		var earlier *int64
		err = r.in.cfg.Pool.QueryRow(ctx, selectEarlier, l.Consumer, l.Key, l.Version, l.ID).Scan(&earlier)
		if err == nil && earlier != nil {
			err = &refusal{CodeBehind, fmt.Errorf("dead letter %d of its key comes first", *earlier)}
		}
	}
	if refused, is := errors.AsType[*refusal](err); is {
		done.Outcome, done.Code, done.Error = ReplayRefused, refused.code, refused.Error()
		return nil
	}
	return err
}

// reclaimEntry takes an id that was given up or parked with this very record, and not with another one that has the id
// too and waits itself. The hash stays that of the record that came: its redelivery is a duplicate, whatever was put in
// its place.
const reclaimEntry = `
update public.inbox set metadata = metadata || '{"outcome": "applied"}'
where consumer = $1 and event_id = $2 and event_time = $3 and payload_hash = $4
    and metadata ->> 'outcome' in ('dead', 'parked', 'gap')`

// claim takes the event's id and its place in the order of its key, as for a delivery. It returns Applied when the
// handler is to run, Duplicate and Stale when there is nothing left to do, and a refusal where neither can be known.
func (in *Inbox) claim(
	ctx context.Context, w *work, it *item, l deadletter.Letter, force bool,
) (Outcome, error) {
	outcome, err := in.claimID(ctx, w, it, l, force)
	if err != nil || outcome != Applied || !in.cfg.Versioned || it.event.Version == 0 {
		return outcome, err
	}
	s, moved := &state{watermarks: make(map[string]int64)}, moves{}
	rows, err := w.Query(ctx, selectWatermarks, in.cfg.Consumer, []string{it.event.Key})
	if err == nil {
		err = collect(s.watermarks)(rows)
	}
	if err != nil {
		return Failed, fmt.Errorf("read watermark: %w", err)
	}
	if it.outcome, err = in.follow(ctx, w, it, s, &moved); err != nil {
		return Failed, err
	}
	switch it.outcome {
	case Stale:
		return Stale, in.note(ctx, w, []*item{it})
	case Gap:
		reason := it.parkedFor()
		return Failed, &refusal{reason.code, reason.err}
	default:
		return Applied, in.advance(ctx, w, &moved)
	}
}

func (in *Inbox) claimID(
	ctx context.Context, w *work, it *item, l deadletter.Letter, force bool,
) (Outcome, error) {
	came := sha256.Sum256(l.Payload)
	tag, err := w.Exec(ctx, reclaimEntry, in.cfg.Consumer, it.entry.id, it.entry.place, came[:])
	if err != nil {
		return Failed, fmt.Errorf("claim inbox row: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return Applied, nil
	}
	it.entry.origin.outcome = "" // it is about to be applied, like a delivery
	s, err := in.askOne(ctx, w, it)
	if err != nil {
		return Failed, err
	}
	if s.inserted[it.entry.id] {
		return Applied, nil
	}
	hash, err := in.hashOf(ctx, w, &it.entry)
	if err != nil {
		return Failed, err
	}
	switch {
	case hash == nil && (l.Remembered || force):
		return Applied, nil // the inbox has forgotten the id; the letter has not, or somebody answers for it
	case hash == nil:
		return Failed, &refusal{CodeTooOld, ErrExpired}
	case it.sameAs(hash) == Conflict:
		return Failed, &refusal{CodeConflict, errConflict}
	default:
		return Duplicate, nil
	}
}
