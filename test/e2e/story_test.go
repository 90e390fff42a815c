package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/outbox/relay"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func TestTheStory(t *testing.T) {
	parallel(t)
	h := newStack(t)
	stops := []func(){h.start(t, customerService), h.start(t, notificationService)}

	h.tell(t)

	again := h.client().signUp(t)
	require.Equal(t, "pending_verification", again.Body["status"], "a retry gets the first answer, word for word")
	for _, stop := range stops {
		stop()
	}
	h.requireTold(t)
}

func TestARequestIsItsOwnCorrelation(t *testing.T) {
	inProcess(t)
	h := newStack(t)
	h.start(t, customerService)
	h.start(t, notificationService)
	h.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups", signUpBody,
		map[string]string{"X-Correlation-Id": "no id\tat all"})
	registered, sent := h.headersOf(t, contract.TopicUsers), h.headersOf(t, contract.TopicMails)
	require.Len(t, registered["ce_correlationid"], 36)
	require.Equal(t, registered["ce_correlationid"], sent["ce_correlationid"])
	require.Equal(t, registered["ce_id"], sent["ce_causationid"])
	require.NotEmpty(t, sent["traceparent"])
}

func (h *stack) tell(t *testing.T) {
	t.Helper()
	person := h.client()
	signedUp := person.signUp(t)
	id, ok := signedUp.Body["user_id"].(string)
	require.True(t, ok, signedUp.raw)
	path := "/v1/customers/" + id
	profile := person.insist(t, http.StatusOK, http.MethodGet, path, "", nil)
	require.Equal(t, "Ada", profile.Body["name"])

	messages := h.awaitMail(t)
	require.Len(t, messages[0].Links, 1)
	link, err := url.Parse(messages[0].Links[0])
	require.NoError(t, err)
	person.insist(t, http.StatusOK, http.MethodGet, link.RequestURI(), "", nil)
	person.insist(t, http.StatusOK, http.MethodPost, link.Path, fmt.Sprintf(`{"token":%q}`, link.Query().Get("token")),
		map[string]string{"Content-Type": "application/json"})

	testkit.Until(t, func() bool {
		answer, err := person.try(t.Context(), http.MethodGet, path, "", nil)
		return err == nil && answer.Status == http.StatusOK &&
			answer.Body["status"] == "verified" && answer.Body["verification_email_sent_at"] != nil
	}, "profile never verified with its mail sent")
	testkit.Until(t, func() bool {
		return count(t, h.notificationDB, `select count(*) from contact where verified`) == 1
	}, "contact never verified")
	h.awaitRecorded(t)
}

func (h *stack) awaitRecorded(t *testing.T) {
	t.Helper()
	awaitRecorded(t, h.customerDB)
	awaitRecorded(t, h.notificationDB)
}

func awaitRecorded(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	testkit.Until(t, func() bool {
		status, err := relay.ReadStatus(t.Context(), db)
		return err == nil && status.Waiting == 0
	}, "what was sent never recorded")
}

func (h *stack) awaitMail(t *testing.T) []mailbox.Message {
	t.Helper()
	testkit.Until(t, func() bool { return len(h.box.Messages()) > 0 }, "no mail came")
	return h.box.Messages()
}

// requireTold requires the same end after any crashes: everything is there, once.
func (h *stack) requireTold(t *testing.T) {
	t.Helper()
	for _, row := range []struct {
		db   *pgxpool.Pool
		sql  string
		want int
	}{
		{h.customerDB, `select count(*) from users where status = 'verified'`, 1},
		{h.customerDB, `select count(*) from users`, 1},
		{h.customerDB, `select count(*) from profile where status = 'verified' and version = 2`, 1},
		{h.customerDB, `select count(*) from profile`, 1},
		{h.customerDB, `select count(*) from verification_mail`, 1},
		{h.notificationDB, `select count(*) from contact where verified and version = 2`, 1},
		{h.notificationDB, `select count(*) from lease where state = 'done'`, 1},
		{h.notificationDB, `select count(*) from mail`, 1},
		{h.customerDB, `select count(*) from outbox`, 2},
		{h.notificationDB, `select count(*) from outbox`, 1},
	} {
		require.Equal(t, row.want, count(t, row.db, row.sql), row.sql)
	}
	require.Len(t, h.box.Messages(), 1, "one mail")
	h.judge(t)
}

// judges look for anything wrong in a stack whose events are all handled. Files of optional folders add theirs.
var judges []func(h *stack, t *testing.T)

func (h *stack) judge(t *testing.T) {
	t.Helper()
	for _, judge := range judges {
		judge(h, t)
	}
}

func count(t *testing.T, db *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(context.WithoutCancel(t.Context()), sql).Scan(&n), sql)
	return n
}

// parallel runs a test alone on a shared broker, where tests share topics.
func parallel(t *testing.T) {
	t.Helper()
	if !kafkatest.IsShared() {
		t.Parallel()
	}
}

// inProcess is parallel for a story that no broker changes: about HTTP, operators, mails, logs or a database that is
// away. It runs once, in make test, and not again on a real Kafka.
func inProcess(t *testing.T) {
	t.Helper()
	kafkatest.InProcess(t)
	t.Parallel()
}

func execute(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}
