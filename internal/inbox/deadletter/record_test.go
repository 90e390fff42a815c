package deadletter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/event/cloudevent"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func letter(n int) deadletter.Letter {
	return deadletter.Letter{
		Consumer: "test", EventID: fmt.Sprint("event-", n), EventType: "pinged", Version: int64(n),
		Key: []byte{'k', byte('0' + n%3)}, Payload: []byte{0xff, 0, byte(n)},
		Headers: []deadletter.Header{{Name: "x", Value: []byte{0xfe}}, {Name: "x", Value: []byte{}}},
		Group:   "local.test", Topic: "topic-1", Partition: 1, Offset: int64(n), RecordTime: time.Unix(100, 0).UTC(),
		Class: "unknown", Code: "handler_failed", Error: fmt.Sprint("Boom ", n), Attempts: 5,
		FirstFailedAt: time.Unix(200, 0).UTC(), Holds: true, Remembered: true,
	}
}

func file(t testing.TB, pool *pgxpool.Pool, l deadletter.Letter) {
	t.Helper()
	sql, args, err := deadletter.Insertion(l)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// A handler's error quotes what it was given: a megabyte, and no text.
func TestTheErrorIsBounded(t *testing.T) {
	t.Parallel()
	l := letter(1)
	l.Error = strings.Repeat("Boom \xff\x00", 150_000)
	pool := pgtest.New(t, migrations.Inbox, migrations.Audit)
	file(t, pool, l)
	var stored string
	require.NoError(t, pool.QueryRow(t.Context(), `select error from dead_letter`).Scan(&stored))
	require.True(t, strings.HasPrefix(stored, "Boom "))
	require.Less(t, len(stored), 4*failure.MaxText)
}

// A copy is an event of its own: it has the payload that came, the headers that are text, and why the record was given
// up.
func TestCopiesForOtherTools(t *testing.T) {
	t.Parallel()
	l := letter(7)
	l.Replays, l.FirstFailedAt = 3, time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("", 3600))
	l.Headers = []deadletter.Header{
		{Name: cloudevent.HeaderID, Value: []byte("event-7")},
		{Name: cloudevent.HeaderType, Value: []byte("pinged")},
		{Name: cloudevent.HeaderContentType, Value: []byte("text/plain")},
		{Name: cloudevent.HeaderCausationID, Value: []byte("event-6")},
		{Name: cloudevent.HeaderCorrelationID, Value: []byte("request")},
		{Name: "tenant", Value: []byte("first")},
		{Name: "tenant", Value: []byte("last")},
		{Name: "binary", Value: []byte{0xfe}},
		{Name: "\xff", Value: nil},
		{Name: "", Value: []byte("nameless")},
		{Name: "empty", Value: nil},
	}
	copied := l.Copy("/shop")
	require.Equal(t, cloudevent.Event{
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

// The error in a copy is text of a bounded size, however long the handler's was.
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
		require.True(t, strings.HasPrefix(deadletter.Text(l.Error), begins))
		require.True(t, cut || text == deadletter.Text(l.Error), "it says what is missing")
	})
}

// strange draws bytes of any kind; nil is null.
func strange(t *rapid.T, label string) []byte {
	return rapid.SampledFrom([][]byte{
		nil, {}, {0}, {0xff}, []byte("text"), []byte("\xc3("), []byte("Größe"), []byte("a\x00b"), []byte("\ufffd"),
	}).Draw(t, label)
}

func drawRecord(t *rapid.T, n int) deadletter.Letter {
	l := letter(n)
	l.Key, l.Payload = strange(t, "key"), strange(t, "payload")
	l.Headers = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deadletter.Header {
		return deadletter.Header{Name: string(strange(t, "name")), Value: strange(t, "value")}
	}), 0, 4).Draw(t, "headers")
	switch rapid.IntRange(0, 2).Draw(t, "time") {
	case 0:
		l.RecordTime = time.Time{}
	case 1:
		l.RecordTime, l.RecordMS = time.Time{}, rapid.SampledFrom([]int64{1 << 62, -1 << 62, 253402300800000}).Draw(t, "ms")
	}
	return l
}

func isText(s string) bool { return deadletter.Text(s) == s }

// A record is the same in the table, byte for byte. Its copy is an event that an outbox takes.
func TestARecordKeepsItsBytes(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t, migrations.Inbox, migrations.Audit)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		want := drawRecord(rt, n)
		file(t, pool, asItCame(want))
		rows, _ := pool.Query(t.Context(), `select `+deadletter.Columns+` from dead_letter where event_id = $1`, want.EventID)
		got, err := pgx.CollectExactlyOneRow(rows, deadletter.Scan)
		require.NoError(rt, err)
		same(rt, want, got)

		copied := want.Copy("/shop")
		require.True(rt, isText(copied.Key) && copied.Key != "" && len(copied.Key) <= cloudevent.MaxKeyBytes)
		require.NotEmpty(rt, copied.Data)
		for name, value := range copied.Extensions {
			require.True(rt, name != "" && isText(name) && isText(value) && !cloudevent.IsAttribute(name))
		}
	})
}

// asItCame is the record with a time as the broker's client tells it.
func asItCame(l deadletter.Letter) deadletter.Letter {
	if l.RecordMS != 0 {
		l.RecordTime, l.RecordMS = time.UnixMilli(l.RecordMS), 0
	}
	return l
}

func same(t *rapid.T, want, got deadletter.Letter) {
	record := func(l deadletter.Letter) string {
		return fmt.Sprintf("%#v %#v %#v %v %v", l.Key, l.Payload, l.Headers, l.RecordTime, l.RecordMS)
	}
	require.Equal(t, record(want), record(got))
}
