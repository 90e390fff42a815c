package deadletter_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func letter(n int) deadletter.Letter {
	return deadletter.Letter{
		Consumer: "test", EventID: fmt.Sprint("event-", n), Type: "pinged", Version: int64(n),
		Key: []byte{'k', byte('0' + n%3)}, Payload: []byte{0xff, 0, byte(n)}, Bytes: 3,
		Headers: []deadletter.Header{{Name: "x", Value: []byte{0xfe}}, {Name: "x", Value: []byte{}}},
		Group:   "local.test", Topic: "topic-1", Partition: 1, Offset: int64(n), RecordTime: time.Unix(100, 0).UTC(),
		Class: "unknown", Code: "handler_failed", Error: fmt.Sprint("Boom ", n), Attempts: 5,
		FirstFailedAt: time.Unix(200, 0).UTC(), Holds: true, Remembered: true,
	}
}

func store(t *testing.T, pool *pgxpool.Pool, letters ...deadletter.Letter) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for _, l := range letters {
			if _, err := deadletter.Insert(t.Context(), tx, l); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
}

func open(t *testing.T, letters ...deadletter.Letter) (*deadletter.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t, migrations.Inbox, migrations.Audit)
	store(t, pool, letters...)
	return deadletter.NewStore(pool), pool
}

func read(t *testing.T, pool *pgxpool.Pool, condition string, args ...any) []deadletter.Letter {
	t.Helper()
	rows, _ := pool.Query(t.Context(),
		`select `+deadletter.Columns+` from dead_letter where `+condition+` order by id`, args...)
	letters, err := pgx.CollectRows(rows, deadletter.Scan)
	require.NoError(t, err)
	return letters
}

func TestTheErrorIsBounded(t *testing.T) {
	t.Parallel()
	l := letter(1)
	l.Error = strings.Repeat("Boom \xff\x00", 150_000)
	_, pool := open(t, l)
	stored := read(t, pool, "true")[0].Error
	require.True(t, strings.HasPrefix(stored, "Boom "))
	require.Less(t, len(stored), 4*failure.MaxText)
}

func TestARecordWithoutHeaders(t *testing.T) {
	t.Parallel()
	l := letter(1)
	l.Headers = nil
	_, pool := open(t, l)
	require.Equal(t, []deadletter.Header{}, read(t, pool, "true")[0].Headers)
}

func TestCopiesForOtherTools(t *testing.T) {
	t.Parallel()
	l := letter(7)
	l.Replays, l.FirstFailedAt = 3, time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("", 3600))
	l.Headers = []deadletter.Header{
		{Name: event.HeaderID, Value: []byte("event-7")},
		{Name: event.HeaderType, Value: []byte("pinged")},
		{Name: event.HeaderContentType, Value: []byte("text/plain")},
		{Name: event.HeaderCausationID, Value: []byte("event-6")},
		{Name: event.HeaderCorrelationID, Value: []byte("request")},
		{Name: "tenant", Value: []byte("first")},
		{Name: "tenant", Value: []byte("last")},
		{Name: "binary", Value: []byte{0xfe}},
		{Name: "\xff", Value: nil},
		{Name: "", Value: []byte("nameless")},
		{Name: "empty", Value: nil},
	}
	copied := l.Copy("/shop")
	require.Equal(t, event.Event{
		Source: "/shop", Type: deadletter.CopyType, Topic: "dlq.local.test.topic-1", Key: "k1", Data: l.Payload,
		Extensions: map[string]string{
			"dlq_ce_id": "event-7", "dlq_ce_type": "pinged", "dlq_content-type": "text/plain",
			"dlq_ce_causationid": "event-6", "ce_causationid": "event-7", "ce_correlationid": "request",
			"tenant": "last", "empty": "",
			"__dlq.errors.topic": "topic-1", "__dlq.errors.partition": "1", "__dlq.errors.offset": "7",
			"__dlq.errors.group": "local.test", "__dlq.errors.delivery.count": "5", "__dlq.errors.message": "Boom 7",
			"dlq_error_class": "unknown", "dlq_error_code": "handler_failed", "dlq_attempts": "5",
			"dlq_first_failed_at": "2026-01-02T03:04:05.000000006Z", "dlq_replay_count": "3", "dlq_handler": "test",
		},
	}, copied)
	l.Payload = nil
	require.Equal(t, "null", string(l.Copy("/shop").Data))
}

func TestTheErrorInACopyIsBounded(t *testing.T) {
	t.Parallel()
	l := letter(7)
	rapid.Check(t, func(t *rapid.T) {
		l.Error = rapid.StringOfN(rapid.Rune(), 300, 1200, -1).Draw(t, "error") +
			rapid.SampledFrom([]string{"", "\xff"}).Draw(t, "end")
		text := l.Copy("/shop").Extensions["__dlq.errors.message"]
		require.LessOrEqual(t, len(text), 1000)
		require.True(t, utf8.ValidString(text))
		begins, _, cut := strings.Cut(text, "... (")
		require.True(t, strings.HasPrefix(failure.Text(l.Error), begins))
		require.True(t, cut || text == failure.Text(l.Error), "it says what is missing")
	})
}

// strange draws any bytes; nil is null.
func strange(t *rapid.T, label string) []byte {
	return rapid.SampledFrom([][]byte{
		nil, {}, {0}, {0xff}, []byte("text"), []byte("\xc3("), []byte("Größe"), []byte("a\x00b"), []byte("\ufffd"),
	}).Draw(t, label)
}

func drawRecord(t *rapid.T, n int) deadletter.Letter {
	l := letter(n)
	l.Key, l.Payload = strange(t, "key"), strange(t, "payload")
	l.Headers = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deadletter.Header {
		return deadletter.Header{Name: failure.Text(string(strange(t, "name"))), Value: strange(t, "value")}
	}), 0, 4).Draw(t, "headers")
	if rapid.Bool().Draw(t, "without a time") {
		l.RecordTime = time.Time{}
	}
	return l
}

func isText(s string) bool { return failure.Text(s) == s }

// Null becomes empty.
func TestARecordKeepsItsBytes(t *testing.T) {
	t.Parallel()
	operator, pool := open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		want := drawRecord(rt, n)
		store(t, pool, want)
		got := read(t, pool, "event_id = $1", want.EventID)[0]
		require.Equal(rt, recordOf(want), recordOf(got))
		require.False(rt, got.IsEdited())

		set := deadletter.Header{Name: "mended", Value: []byte("1")}
		edited, err := operator.Edit(t.Context(), got.ID, deadletter.Edit{Set: []deadletter.Header{set}}, by)
		require.NoError(rt, err)
		headers, payload := edited.Current()
		require.Equal(rt, append(got.Headers, set), headers)
		require.Equal(rt, got.Payload, payload)
		require.Equal(rt, recordOf(want), recordOf(edited))

		copied := want.Copy("/shop")
		require.True(rt, isText(copied.Key) && copied.Key != "" && len(copied.Key) <= event.MaxKeyBytes)
		require.NotEmpty(rt, copied.Data)
		for name, value := range copied.Extensions {
			require.True(rt, name != "" && isText(name) && isText(value) && !event.IsAttribute(name))
		}
	})
}

func recordOf(l deadletter.Letter) string {
	return fmt.Sprintf("%q %q %q %s", []byte(l.Key), l.Payload, l.Headers, l.RecordTime.UTC())
}

// PostgreSQL cannot store every 64-bit time.
func TestTheTimeOfARecordThatNoTableHolds(t *testing.T) {
	t.Parallel()
	const lastMoment = 253402300799999
	_, pool := open(t)
	for i, ms := range []int64{lastMoment, lastMoment + 1, math.MaxInt64, math.MinInt64} {
		l := letter(i)
		l.RecordTime = time.UnixMilli(ms).UTC()
		store(t, pool, l)
		stored := read(t, pool, "event_id = $1", l.EventID)[0].RecordTime
		require.Equal(t, ms == lastMoment, stored.Equal(l.RecordTime))
		require.Equal(t, ms != lastMoment, stored.IsZero())
	}
}
