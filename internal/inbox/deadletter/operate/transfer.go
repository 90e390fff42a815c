package operate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/inbox/deadletter"
)

// Format is what every exported line says of itself. Another layout gets another number.
const Format = "twinbox.dead_letter/1"

// line is one exported dead letter. Keys, header values and payloads are base64: they need not be text. Null stays
// null.
type line struct {
	Format string `json:"format"`
	deadletter.Letter
}

const exportPage = 200

// Export writes the dead letters that the filter picks, one JSON object per line, by ID, and returns how many it wrote.
// It reads page by page, a bounded number of bytes at once: what arrives meanwhile may or may not be among them.
func (s *Store) Export(ctx context.Context, f Filter, w io.Writer) (n int, err error) {
	if err := f.check(); err != nil {
		return 0, err
	}
	limit := cmp.Or(f.Limit, math.MaxInt)
	for n < limit {
		f.Limit = min(exportPage, limit-n)
		letters, err := s.List(ctx, f)
		if err != nil || len(letters) == 0 {
			return n, err
		}
		for _, l := range letters {
			encoded, err := json.Marshal(line{Format, l}, json.FormatNilSliceAsNull(true))
			if err != nil {
				return n, fmt.Errorf("encode dead letter %d: %w", l.ID, err)
			}
			if _, err := w.Write(append(encoded, '\n')); err != nil {
				return n, fmt.Errorf("write dead letter %d: %w", l.ID, err)
			}
			n, f.After = n+1, l.ID
		}
	}
	return n, nil
}

// MaxLine bounds one line of an import: a record of the largest size a broker takes, twice (it may be edited), in
// base64.
const MaxLine = 8 << 20

// ErrLineTooLong says that a line is longer than [MaxLine].
var ErrLineTooLong = errors.New("the line is too long")

// Lines reads line by line, without the line ends and the blanks around. One that is too long comes as
// [ErrLineTooLong], and the next one after it; any other error is the last thing that comes.
func Lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, MaxLine+1)
		for more := true; more; {
			line, err := in.ReadSlice('\n')
			tooLong := len(line) > MaxLine
			for errors.Is(err, bufio.ErrBufferFull) { // the rest of it is not held
				_, err = in.ReadSlice('\n')
			}
			ended := errors.Is(err, io.EOF)
			switch {
			case err != nil && !ended:
				yield(nil, err)
				return
			case tooLong:
				more = yield(nil, ErrLineTooLong)
			case len(line) > 0:
				more = yield(bytes.TrimSpace(line), nil)
			}
			more = more && !ended
		}
	}
}

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
	// The value is too long, not text or out of range (class 22), against a constraint (23), or more than an index
	// holds (54).
	pgErr, is := errors.AsType[*pgconn.PgError](err)
	if is && slices.Contains([]string{"22", "23", "54"}, pgErr.Code[:min(2, len(pgErr.Code))]) {
		return false, &Error{LineRefused, pgErr.Message}
	}
	return added && err == nil, err
}
