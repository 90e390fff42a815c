package deadletter

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/cloudevent"
)

// LineError says what is wrong with one line of an import.
type LineError struct {
	Line   int    `json:"line"` // from 1
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// The stable codes of a [LineError].
const (
	LineTooLong       = "line_too_long"
	LineInvalid       = "invalid_json"
	LineUnknownFormat = "unknown_format"
	LineIncomplete    = "missing_field"
	LineInvalidState  = "invalid_state"
	LineRefused       = "refused_by_database"
)

// maxLine bounds one letter: a record of the largest size a broker takes, twice (it may be edited), in base64.
const maxLine = 8 << 20

// Import reads what [Store.Export] wrote and files the letters that are not there yet, under new IDs, for the consumers
// they came from. A letter that is there stays as it is, so importing twice changes nothing, and settled letters stay
// settled. A line that cannot be imported is reported and the rest goes on; each letter has a transaction of its own.
//
// Whether an imported letter's event was applied in the meantime is for the inbox to say when it is replayed: nothing
// is taken over from the place where the letter was exported.
func (s *Store) Import(ctx context.Context, r io.Reader, c Change) (Result, error) {
	var result Result
	if err := c.check(); err != nil {
		return result, err
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	number := 0
	for lines.Scan() {
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		l, wrong := parse(lines.Bytes())
		if wrong == nil && !c.DryRun {
			var added bool
			var err error
			if added, wrong, err = s.importOne(ctx, l, c); err != nil {
				return result, fmt.Errorf("import line %d: %w", number, err)
			}
			if added {
				result.Changed++
				c.progress(result.Changed)
			}
		}
		if wrong != nil {
			wrong.Line = number
			result.Errors = append(result.Errors, *wrong)
			continue
		}
		result.Matched++
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) { // what follows cannot be found any more
		result.Errors = append(result.Errors, LineError{number + 1, LineTooLong, fmt.Sprintf("over %d bytes", maxLine)})
		return result, nil
	}
	if err := lines.Err(); err != nil {
		return result, fmt.Errorf("read import: %w", err)
	}
	return result, nil
}

func parse(text []byte) (l Letter, wrong *LineError) {
	var in line
	if err := json.Unmarshal(text, &in); err != nil {
		return l, &LineError{Code: LineInvalid, Detail: err.Error()}
	}
	l = in.Letter
	switch {
	case in.Format != Format:
		return l, &LineError{Code: LineUnknownFormat, Detail: fmt.Sprintf("%q, want %q", in.Format, Format)}
	case l.Consumer == "" || l.EventID == "" || l.Topic == "" || l.Class == "" || l.Code == "" || l.FirstFailedAt.IsZero():
		return l, &LineError{
			Code: LineIncomplete, Detail: "consumer, event_id, topic, class, code and first_failed_at are required",
		}
	case l.State != Waiting && l.State != Replayed && l.State != Discarded:
		return l, &LineError{Code: LineInvalidState, Detail: fmt.Sprintf("%q", l.State)}
	}
	l.Remembered = false
	l.Holds = l.Holds && utf8.Valid(l.Key) && len(l.Key) > 0 && len(l.Key) <= cloudevent.MaxKeyBytes
	return l, nil
}

const completeImported = `
update public.dead_letter
set state = $4, failed_at = $5, replays = $6, outcome = $7, settled_at = $8,
    edited_headers = $9, edited_payload = $10, edited_by = $11, edited_at = $12
where consumer = $1 and event_id = $2 and sha256(payload) = sha256($3)
returning id`

// importOne files the letter if its event has none. What the database refuses for its content is the line's fault.
func (s *Store) importOne(ctx context.Context, l Letter, c Change) (added bool, wrong *LineError, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		sql, args, err := Insertion(l)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sql, args...)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		complete := []any{
			l.Consumer, l.EventID, notNil(l.Payload), string(l.State), l.FailedAt, l.Replays, l.Outcome, orNull(l.SettledAt),
		}
		edited, err := l.Edited.columns()
		if err != nil {
			return err
		}
		var id int64
		if err := tx.QueryRow(ctx, completeImported, append(complete, edited...)...).Scan(&id); err != nil {
			return err
		}
		added = true
		return audit.Record(ctx, tx, c.action("import", id, "", l.State))
	})
	if refused, is := refusedContent(err); is {
		return false, &LineError{Code: LineRefused, Detail: refused}, nil
	}
	return added && err == nil, nil, err
}

// columns are the edited ones, empty for a nil edit.
func (e *Edited) columns() ([]any, error) {
	if e == nil {
		return []any{nil, nil, "", nil}, nil
	}
	headers, err := encodeHeaders(e.Headers)
	return []any{headers, e.Payload, e.By, e.At}, err
}
