package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
)

// The stable codes of lines that are not imported.
const (
	LineTooLong       = "line_too_long"
	LineInvalid       = "invalid_json"
	LineUnknownFormat = "unknown_format"
	LineIncomplete    = "missing_field"
	LineInvalidState  = "invalid_state"
	LineRefused       = "refused_by_database"
)

// Import reads what [Store.Export] wrote and files the dead letters that are not there yet, under new IDs, for the
// consumers they came from. A dead letter that is there stays as it is, so importing twice changes nothing, and settled
// dead letters stay settled. A line that cannot be imported is reported and the rest goes on; each dead letter has a
// transaction of its own.
//
// Whether an imported dead letter's event was applied in the meantime is for the inbox to say when it is replayed:
// nothing is taken over from the place where the dead letter was exported.
func (s *Store) Import(ctx context.Context, r io.Reader, c audit.Change) (audit.Result, error) {
	result := audit.Result{DryRun: c.DryRun}
	number := 0
	for text, err := range Lines(r) {
		number++
		added := false
		switch {
		case errors.Is(err, ErrLineTooLong):
			err = &Error{LineTooLong, fmt.Sprintf("over %d bytes", MaxLine)}
		case err != nil:
			return result, fmt.Errorf("read import: %w", err)
		case len(text) > 0:
			added, err = s.importOne(ctx, text, c)
		}
		wrong, is := errors.AsType[*Error](err)
		switch {
		case is:
			result.Fail(fmt.Sprintf("line %d", number), wrong.Code, wrong.Detail)
		case err != nil:
			return result, fmt.Errorf("import line %d: %w", number, err)
		case added:
			result.Count++
			c.Tell(result.Count)
		}
	}
	return result, nil
}

func parse(text []byte) (l deadletter.Letter, err error) {
	var in line
	if err := json.Unmarshal(text, &in); err != nil {
		return l, &Error{LineInvalid, err.Error()}
	}
	l = in.Letter
	switch {
	case in.Format != Format:
		return l, &Error{LineUnknownFormat, fmt.Sprintf("%q, want %q", in.Format, Format)}
	case l.Consumer == "" || l.EventID == "" || l.Topic == "" || l.Class == "" || l.Code == "" || l.FirstFailedAt.IsZero():
		return l, &Error{LineIncomplete, "consumer, event_id, topic, class, code and first_failed_at are required"}
	case l.State != deadletter.Waiting && l.State != deadletter.Replayed && l.State != deadletter.Discarded:
		return l, &Error{LineInvalidState, fmt.Sprintf("%q", l.State)}
	}
	if member := unstorable(l); member != "" {
		return l, &Error{LineRefused, member + " is out of its range, too long, or holds a zero byte"}
	}
	l.Remembered = false
	l.Holds = l.Holds && utf8.Valid(l.Key) && len(l.Key) > 0 && len(l.Key) <= cloudevent.MaxKeyBytes
	return l, nil
}

// unstorable is the first member that the table would not take, or that could not be exported again, so that a dry run
// finds it as well; or "".
func unstorable(l deadletter.Letter) string {
	edited := deadletter.Edited{At: l.FirstFailedAt}
	if l.Edited != nil {
		edited = *l.Edited
	}
	for _, member := range []struct {
		name string
		fits bool
	}{
		{"attempts", isCount(l.Attempts)},
		{"replays", isCount(l.Replays)},
		{"version", l.Version >= 0},
		{"partition", l.Partition >= 0},
		{"consumer", isShort(l.Consumer)},
		{"event_id", isShort(l.EventID)},
		{"group", isShort(l.Group)},
		{"topic", isShort(l.Topic)},
		{"class", isShort(l.Class)},
		{"code", isShort(l.Code)},
		{"outcome", isShort(l.Outcome)},
		{"edited.by", isShort(edited.By)},
		{"first_failed_at", isOurs(l.FirstFailedAt)},
		{"failed_at", isOurs(l.FailedAt)},
		{"edited.at", isOurs(edited.At)},
	} {
		if !member.fits {
			return member.name
		}
	}
	return ""
}

func isCount(n int) bool { return n >= 0 && n <= math.MaxInt32 }

func isShort(text string) bool {
	return utf8.RuneCountInString(text) <= cloudevent.MaxIDLength && deadletter.Text(text) == text
}

// isOurs says that a clock of ours may have shown the time.
func isOurs(at time.Time) bool { return at.Year() >= 1970 && at.Year() <= 9999 }

const completeImported = `
update public.dead_letter
set state = $4, failed_at = $5, replays = $6, outcome = $7, settled_at = $8,
    edited_headers = $9, edited_payload = $10, edited_by = $11, edited_at = $12
where consumer = $1 and event_id = $2 and sha256(payload) = sha256(coalesce($3::bytea, ''))
returning id`

// importOne files the line's dead letter if its event has none, and says whether it did. The error is an [*Error] where
// the line is at fault; so it is where the database refuses its content.
func (s *Store) importOne(ctx context.Context, text []byte, c audit.Change) (added bool, err error) {
	l, err := parse(text)
	if err != nil || c.DryRun {
		return err == nil, err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		sql, args, err := deadletter.Insertion(l)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sql, args...)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		complete := []any{
			l.Consumer, l.EventID, l.Payload, string(l.State), l.FailedAt, l.Replays, l.Outcome, deadletter.OrNull(l.SettledAt),
		}
		edited := []any{nil, nil, "", nil}
		if l.Edited != nil {
			headers, err := deadletter.EncodeHeaders(l.Edited.Headers)
			if err != nil {
				return err
			}
			edited = []any{headers, l.Edited.Payload, l.Edited.By, l.Edited.At}
		}
		var id int64
		if err := tx.QueryRow(ctx, completeImported, append(complete, edited...)...).Scan(&id); err != nil {
			return err
		}
		added = true
		return audit.Record(ctx, tx, action(c, "import", id, "", l.State))
	})
	if refused, is := refusedContent(err); is {
		return false, &Error{LineRefused, refused}
	}
	return added && err == nil, err
}
