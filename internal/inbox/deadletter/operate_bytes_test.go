package deadletter_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

var by = audit.Change{By: "ana", Reason: "test"}

func open(t *testing.T, letters ...deadletter.Letter) (*operate.Store, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.New(t, migrations.Inbox, migrations.Audit)
	for _, l := range letters {
		sql, args, err := deadletter.Insertion(l)
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	return operate.NewStore(pool), pool
}

// A record is the same in an export, after its import and after an edit of something else, byte for byte.
func TestARecordKeepsItsBytesInOperatorsHands(t *testing.T) {
	t.Parallel()
	here, herePool := open(t)
	there, _ := open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		want := drawRecord(rt, n)
		file(t, herePool, asItCame(want))
		same(rt, want, find(t, here, want.EventID))

		var line bytes.Buffer
		_, err := here.Export(t.Context(), operate.Filter{EventID: want.EventID}, &line)
		require.NoError(rt, err)
		result, err := there.Import(t.Context(), strings.NewReader(line.String()), by)
		require.NoError(rt, err)
		require.Empty(rt, result.Errors, line.String())
		same(rt, want, find(t, there, want.EventID))

		set := deadletter.Header{Name: "mended", Value: []byte("1")}
		edited, err := there.Edit(t.Context(), find(t, there, want.EventID).ID,
			operate.Edit{Set: []deadletter.Header{set}}, by)
		require.NoError(rt, err)
		headers, payload := edited.Current()
		require.Equal(rt, append(want.Headers, set), headers)
		require.Equal(rt, want.Payload, payload)
	})
}

func find(t *testing.T, s *operate.Store, eventID string) deadletter.Letter {
	t.Helper()
	found, err := s.List(t.Context(), operate.Filter{EventID: eventID})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}
