package verify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/test/inboxtest"
)

func TestWhatWasGivenUpAndEdited(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.mux = inbox.NewMux()
	inbox.Handle(s.mux, inboxtest.Event, func(_ context.Context, _ pgx.Tx, _ event.Event, d inboxtest.Data) error {
		if d.Value == "key-1" {
			return inbox.Permanent(errors.New("no such key"))
		}
		return nil
	})
	s.add(t, keysOf(3)...)
	s.add(t, keysOf(3)...) // the second event of key-1 parks behind its first
	foreign := event.Event{
		ID: "order-17", Source: "/other", Type: inboxtest.Type, Key: "foreign", Version: 1, Time: time.Now(),
		Data: []byte(`{"value":"a"}`),
	}
	s.lay(t, foreign, -1)
	foreign.Data = []byte(`{"value":"b"}`)
	s.lay(t, foreign, -1)
	nameless := foreign
	nameless.ID, nameless.Key = "", "nameless"
	s.lay(t, nameless, -1)
	s.publish(t)
	s.consume(t)
	verdict := s.verify(t)
	requireWhole(t, verdict)
	require.EqualValues(t, 4, verdict.Consumed[0].Dead)

	s.exec(t, `update dead_letter set edited_headers = headers, edited_payload = '{"value":"mended"}', edited_by = 'ada',
		edited_at = clock_timestamp() where code = 'handler_failed'`)
	s.exec(t, `update dead_letter set edited_headers = headers || '[["ce_id", "bWVuZGVk"]]', edited_payload = payload,
		edited_by = 'ada', edited_at = clock_timestamp() where code = 'missing_id'`)
	for _, in := range s.inboxes {
		replays := inbox.NewReplayer(in, s.mux.HandleMessage)
		err := replays.Replay(t.Context(), deadletter.Filter{}, inbox.Options{
			Change: audit.Change{By: "ada", Reason: "mended"},
		})
		require.NoError(t, err)
		require.NoError(t, replays.ResumeRound(t.Context()))
	}
	var mended int
	require.NoError(t, s.pool.QueryRow(t.Context(),
		`select count(*) from inbox where event_id = 'mended' and consumer = $1`, consumer).Scan(&mended))
	require.Equal(t, 1, mended, "replayed under an id that no record has")
	requireWhole(t, s.verify(t))
}
