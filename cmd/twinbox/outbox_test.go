package main

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/testkit"
)

type tailDocument struct {
	Items []tailed `json:"items"`
}

// tail waits until the key has so many published events.
func (h *stack) tail(t *testing.T, key string, want int) []tailed {
	t.Helper()
	var document tailDocument
	testkit.Until(t, func() bool {
		document = tailDocument{}
		h.twinbox(t, "outbox", "tail", "--key", key, "--json").json(t, &document)
		published := 0
		for _, e := range document.Items {
			if e.State == "published" {
				published++
			}
		}
		return published >= want
	}, "published events of %s", key)
	return document.Items
}

func TestOutboxStatusAndTail(t *testing.T) {
	t.Parallel()
	h := shared(t)
	id := h.signUp(t, "tail@example.org")
	events := h.tail(t, id, 2)
	require.Equal(t, "customer", events[0].Service)
	require.Equal(t, "notification", events[1].Service)
	require.Nil(t, events[0].Payload, "no payload unless asked for")

	table := h.twinbox(t, "outbox", "tail", "--key", id)
	require.Zero(t, table.code, table.stderr)
	require.Contains(t, table.stdout, "SERVICE")
	require.Contains(t, table.stdout, events[0].EventID)
	require.NotContains(t, table.stdout, "tail@example.org")
	require.Contains(t, h.twinbox(t, "outbox", "tail", "--key", id, "--payload").stdout, "tail@example.org")

	status := h.twinbox(t, "outbox", "status")
	require.Zero(t, status.code, status.stderr)
	require.Regexp(t, `customer +leading`, status.stdout)
	var document map[string]adminapi.OutboxStatus
	h.twinbox(t, "outbox", "status", "--json").json(t, &document)
	require.True(t, document["notification"].Leading)

	one := h.twinbox(t, "outbox", "status", "--service", "customer")
	require.NotContains(t, one.stdout, "notification")
}

// What is scheduled is shown where there is any, and for how long it is overdue.
func TestOutboxStatusShowsWhatIsScheduled(t *testing.T) {
	t.Parallel()
	status := func(text string) string { return listener(t, answers(map[string]string{"outbox/status": text})) }
	r := at(t, status(`{"scheduled":3,"overdue_seconds":61.2}`), status(`{}`), "outbox", "status")
	require.Regexp(t, `(?m)^SERVICE +SCHEDULED +OVERDUE\ncustomer +3 +1m1s\n$`, r.stdout)
}

func TestOutboxStatusShowsAPause(t *testing.T) {
	t.Parallel()
	admin := listener(t, answers(map[string]string{"outbox/status": `{"leading":true,
		"paused":{"by":"ada","reason":"moving","since":"2026-01-02T03:04:05Z"}}`}))
	r := at(t, admin, "", "outbox", "status")
	require.Regexp(t, `(?m)^customer +paused `, r.stdout)
	require.Regexp(t, `(?m)^SERVICE +PAUSED +BY +REASON\ncustomer +2026-01-02T03:04:05Z +ada +moving$`, r.stdout)
}

// Each service has a relay of its own, so one must be named.
func TestOutboxPauseNamesOneService(t *testing.T) {
	t.Parallel()
	r := at(t, listener(t, says(aCustomer)), listener(t, says(aNotification)), "outbox", "pause")
	require.Equal(t, service.ExitUsage, r.code)
	require.Contains(t, r.stderr, "give --service too")
}

func TestOutboxRepublish(t *testing.T) {
	t.Parallel()
	h := shared(t)
	id := h.signUp(t, "republish@example.org")
	h.tail(t, id, 2)

	dry := h.twinbox(t, "outbox", "republish", "--key", id)
	require.Zero(t, dry.code, dry.stderr)
	require.Equal(t, "Would republish 1 event of customer.\nWould republish 1 event of notification.\n"+
		"Nothing was changed. To do it, add: --yes --reason \"why\"\n", dry.stdout)
	done := h.twinbox(t, "outbox", "republish", "--key", id, "--yes", "--reason", "a test", "--by", "ada", "--json")
	require.Zero(t, done.code, done.stderr)
	var sum effects
	done.json(t, &sum)
	require.EqualValues(t, 2, sum.Count)
	require.False(t, sum.DryRun)

	none := h.twinbox(t, "outbox", "republish", "--key", "none")
	require.Zero(t, none.code, "nothing to do is no failure: %s", none.stderr)
	require.Contains(t, none.stdout, "0 events")
}

func TestOutboxRelease(t *testing.T) {
	t.Parallel()
	h := shared(t)
	unknown := h.twinbox(t, "outbox", "release", "--topic", "customer.users.v1", "--key", "none")
	require.Equal(t, exitNotFound, unknown.code)
	require.Contains(t, unknown.stderr, "not_parked")

	key := uuid.NewString()
	h.exec(t, h.at.Databases["customer"], `insert into public.outbox_parked (topic, key, reason, permanent) `+
		`values ('customer.users.v1', $1, 'a test', true)`, key)
	dry := h.twinbox(t, "outbox", "release", "--topic", "customer.users.v1", "--key", key)
	require.Zero(t, dry.code, dry.stderr)
	require.Contains(t, dry.stdout, "Would release 1 key of customer.")
	require.Contains(t, h.twinbox(t, "outbox", "status").stdout, key)
	done := h.twinbox(t, "outbox", "release", "--topic", "customer.users.v1", "--key", key,
		"--yes", "--reason", "a test")
	require.Zero(t, done.code, done.stderr)
	require.Equal(t, "Released 1 key of customer.\n", done.stdout)
}

// exec changes a database of the stack behind its back.
func (h *stack) exec(t *testing.T, dsn, sql string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	_, err = conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}
