package deadletter_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/engine/cloudevent"
	"example.com/twinbox/engine/deadletter"
)

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

// A record is the same in the table, in an export, after its import, after an edit of
// something else, and in its copy, byte for byte.
func TestARecordKeepsItsBytes(t *testing.T) {
	t.Parallel()
	here, herePool := open(t)
	there, _ := open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		want := drawRecord(rt, n)
		filed := want
		if want.RecordMS != 0 {
			filed.RecordTime, filed.RecordMS = time.UnixMilli(want.RecordMS), 0 // as it is when it comes
		}
		file(t, herePool, filed)
		got := find(t, here, want.EventID)
		same(rt, want, got)

		var line bytes.Buffer
		_, err := here.Export(t.Context(), deadletter.Filter{EventID: want.EventID}, &line)
		require.NoError(rt, err)
		result, err := there.Import(t.Context(), strings.NewReader(line.String()), by)
		require.NoError(rt, err)
		require.Empty(rt, result.Errors, line.String())
		same(rt, want, find(t, there, want.EventID))

		set := deadletter.Header{Name: "mended", Value: []byte("1")}
		edited, err := there.Edit(t.Context(), find(t, there, want.EventID).ID,
			deadletter.Edit{Set: []deadletter.Header{set}}, by)
		require.NoError(rt, err)
		headers, payload := edited.Current()
		require.Equal(rt, append(want.Headers, set), headers)
		require.Equal(rt, want.Payload, payload)

		wire := want.Copy()
		encoded, err := wire.Encode()
		require.NoError(rt, err)
		decoded, ok := cloudevent.ParseWire(encoded)
		require.True(rt, ok)
		require.Equal(rt, wire, decoded)
		require.Equal(rt, want.Payload == nil, decoded.NullValue)
	})
}

func same(t *rapid.T, want, got deadletter.Letter) {
	record := func(l deadletter.Letter) string {
		return fmt.Sprintf("%#v %#v %#v %v %v", l.Key, l.Payload, l.Headers, l.RecordTime, l.RecordMS)
	}
	require.Equal(t, record(want), record(got))
}

func file(t *testing.T, pool *pgxpool.Pool, l deadletter.Letter) {
	t.Helper()
	sql, args, err := deadletter.Insertion(l)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func find(t *testing.T, s *deadletter.Store, eventID string) deadletter.Letter {
	t.Helper()
	found, err := s.List(t.Context(), deadletter.Filter{EventID: eventID})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}
