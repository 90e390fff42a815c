package notification

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/lease"
)

func TestAMailIsSentOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t)
	b.start(t)
	b.sender.Wake()
	messages := b.awaitMail(t)
	b.awaitState(t, "done")

	m := messages[0]
	require.Equal(t, []string{"ada@example.org"}, m.To)
	require.Equal(t, "no-reply@example.com", m.From)
	require.NotContains(t, m.Text, "Ada", "the address is not proven yet")
	var id string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select id from mail`).Scan(&id))
	require.Equal(t, id+"@example.com", m.MessageID, "the same for every attempt")

	require.Len(t, m.Links, 1)
	require.Equal(t, "http://127.0.0.1:8080/v1/verifications", strings.Split(m.Links[0], "?")[0])

	require.Equal(t, 1, b.count(t, `select count(*) from outbox where event_type = $1 and key = $2 and version = 1`,
		contract.VerificationEmailSent.Type, string(someone)))
}

// The announcement's row as 0.1.0 wrote it.
func TestAnnouncementKeepsItsForm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.register(t)
	const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	_, err := b.pool.Exec(t.Context(), `update mail set id = '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c',
		correlation_id = 'request-1', traceparent = $1, tracestate = 'a=b'`, traceParent)
	require.NoError(t, err)
	var signUp string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select event_id from mail`).Scan(&signUp))
	ctx := event.WithCause(t.Context(), event.Cause{CorrelationID: "operator", CausationID: "operator"})
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("", 3600))
	require.NoError(t, pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		return announceSent(ctx, tx, b.outbox, lease.Settled{EventID: signUp, At: at})
	}))
	var row []string
	require.NoError(t, b.pool.QueryRow(t.Context(), `select array[event_type, source, topic, key, version::text,
		data_schema, (occurred_at at time zone 'UTC')::text, (headers - 'ce_causationid')::text,
		headers->>'ce_causationid', convert_from(payload, 'UTF8')] from outbox`).Scan(&row))
	require.Equal(t, []string{
		"com.example.notification.verification-email-sent.v1",
		"/twinbox/notification",
		"notification.mails.v1",
		"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
		"1",
		"https://example.com/twinbox/events/verification-email-sent.v1.json",
		"2026-01-02 02:04:05.678901",
		`{"tracestate": "a=b", "traceparent": "` + traceParent + `", "ce_correlationid": "request-1"}`,
		signUp,
		`{"user_id":"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",` +
			`"mail_id":"0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c","sent_at":"2026-01-02T02:04:05.678901Z"}`,
	}, row)
}
