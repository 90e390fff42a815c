package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

const token = "0123456789abcdef0123456789abcdef"

func TestWithoutTheTokenAllIsRefused(t *testing.T) {
	t.Parallel()
	b := withoutDatabase(t)
	for name, authorization := range map[string]string{
		"nothing": "", "another token": "Bearer " + token[1:] + "0", "no scheme": token, "another scheme": "Basic " + token,
		"a part": "Bearer " + token[:31], "the token and more": "Bearer " + token + "0",
	} {
		for _, path := range []string{"/admin/v1/service", "/admin/v1/outbox/status", "/admin/v1/nothing"} {
			status, body := b.callAs(t, authorization, http.MethodGet, path, "")
			requireProblem(t, status, body, http.StatusUnauthorized, "unauthorized")
			require.NotContains(t, string(body), token, name)
		}
	}
	status, _ := b.callAs(t, "bearer "+token, http.MethodGet, "/admin/v1/service", "")
	require.Equal(t, http.StatusOK, status, "a scheme's case does not matter")

	off := withoutDatabase(t, func(cfg *admin.Config, _ *http.Server) { cfg.Token = "" })
	for _, authorization := range []string{"", "Bearer ", "Bearer " + token} {
		status, body := off.callAs(t, authorization, http.MethodGet, "/admin/v1/service", "")
		requireProblem(t, status, body, http.StatusForbidden, "operations_off")
	}
}

// A change is refused by any service but the one that is meant, and every answer names its sender.
func TestTheAddressee(t *testing.T) {
	t.Parallel()
	b, state := world(t)
	before := state()
	send := func(op operation, header, value, token string) (*http.Response, string) {
		body := strings.Replace(text(t, op.example), `"dry_run":true`, `"dry_run":false`, 1)
		request, err := http.NewRequestWithContext(t.Context(), op.method, b.server.URL+op.path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set(header, value)
		response, err := b.client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, "test", response.Header.Get(admin.HeaderService))
		require.Equal(t, "here", response.Header.Get(admin.HeaderEnvironment))
		return response, string(answer)
	}
	for _, op := range describedOperations(t) {
		for _, wrong := range [][3]string{
			{admin.HeaderService, "tests", "wrong_service"},
			{admin.HeaderService, "", "wrong_service"},
			{admin.HeaderEnvironment, "prod", "wrong_environment"},
		} {
			response, answer := send(op, wrong[0], wrong[1], token)
			requireProblem(t, response.StatusCode, []byte(answer), http.StatusMisdirectedRequest, wrong[2])
			require.Contains(t, answer, "This is test in the environment here")
		}
		if op.members != nil {
			response, _ := send(op, admin.HeaderService, "test", "another")
			require.Equal(t, http.StatusUnauthorized, response.StatusCode)
		}
	}
	require.Equal(t, before, state())
	status, answer := b.call(t, "GET", "/admin/v1/service", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"name":"test","environment":"here"}`, string(answer))
}

func TestTheDocumentIsShown(t *testing.T) {
	t.Parallel()
	b := withoutDatabase(t, func(cfg *admin.Config, _ *http.Server) { cfg.Token = "" })
	status, body := b.callAs(t, "", http.MethodGet, adminapi.DocumentPath, "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, string(api.Admin), string(body))
	status, body = b.callAs(t, "", http.MethodPost, adminapi.DocumentPath, "{}")
	requireProblem(t, status, body, http.StatusMethodNotAllowed, "method_not_allowed")
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const republish, release = "outbox/republish", "outbox/release"
	who := `"by":"ada","reason":"r","dry_run":true`
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		code                     string
	}{
		{"no operation", "GET", "nothing", "", 404, "not_found"},
		{"no method", "DELETE", "service", "", 405, "method_not_allowed"},
		{"no body", "POST", republish, "", 400, "body_missing"},
		{"an unseen name", "POST", republish, `{"by":"\u200b","reason":"r","dry_run":true,"from":1}`, 422, "invalid_value"},
		{"a turned name", "POST", republish, `{"by":"a\u202eb","reason":"r","dry_run":true,"from":1}`, 422, "invalid_value"},
		{"a C1 line end", "POST", republish, `{"by":"a\u0085b","reason":"r","dry_run":true,"from":1}`, 422, "invalid_value"},
		{"a zero in a key", "POST", republish, `{` + who + `,"key":"\u0000"}`, 422, "invalid_value"},
		{
			"a zero in a filter", "POST", "dead-letters/groups", `{"consumer":"\u0000"}`, 422, "invalid_value",
		},
		{"no UTF-8", "POST", "outbox/events", "{\"key\":\"\xff\"}", 400, "malformed_json"},
		{"two lines", "POST", republish, `{"by":"a\nb","reason":"r","dry_run":true,"from":1}`, 422, "invalid_value"},
		{"nothing selected", "POST", republish, `{"by":"ada","reason":"r","dry_run":false}`, 422, "nothing_selected"},
		{"reversed", "POST", republish, `{"by":"a","reason":"r","dry_run":false,"from":5,"to":1}`, 422, "invalid_value"},
		{"an alias of an id", "POST", republish, `{` + who + `,"event_ids":["0198-0A"]}`, 422, "invalid_value"},
		{"no time", "POST", republish, `{` + who + `,"since":"2026-02-30T00:00:00Z"}`, 400, "wrong_type"},
		{"drop where nothing is parked", "POST", release, `{` + who + `,"topic":"t","key":"k","drop":1}`, 404, "not_parked"},

		{"history of another", "POST", "inbox/history", `{"type":"t","consumer":"x"}`, 404, "consumer_not_found"},

		{"edit of nothing", "POST", "dead-letters/edit", `{` + who + `,"id":1}`, 422, "nothing_to_edit"},
		{"not parked", "POST", release, `{` + who + `,"topic":"t","key":"k"}`, 404, "not_parked"},
		{"limit 1001", "POST", "outbox/events", `{"limit":1001}`, 422, "invalid_value"},
		{"limit of a page", "POST", "dead-letters/query", `{"limit":1001}`, 422, "invalid_value"},
		{"a long event", "POST", "inbox/events", `{"event_id":"` + strings.Repeat("x", 256) + `"}`, 422, "invalid_value"},
		{"no dead letter", "POST", "dead-letters/show", `{"id":99}`, 404, "not_found"},
		{
			"only a state", "POST", "dead-letters/replay", `{` + who + `,"filter":{"state":"waiting","limit":5}}`,
			422, "missing_filter",
		},
		{"discard all", "POST", "dead-letters/discard", `{` + who + `,"filter":{}}`, 422, "missing_filter"},
		{
			"no state", "POST", "dead-letters/query", `{"state":"x"}`, 422, "invalid_filter",
		},
		{"no mails here", "POST", "mails", `{}`, 404, "no_mails"},
		{"a large body", "POST", republish, `{"by":"` + strings.Repeat("x", 3<<20) + `"}`, 413, "body_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.refuses(t, c.method, c.path, c.body, c.status, c.code)
		})
	}
	rows, err := audit.Find(t.Context(), b.pool, audit.Filter{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, rows, "what is refused leaves no trace")
}

func TestRepublishStreamsAndIsAudited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 3)
	status, body := b.operate(t, "POST", "/admin/v1/outbox/republish", `{"by":"ada","reason":"r","dry_run":true,"from":1}`)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"result":{"dry_run":true,"count":3,"failed":0}}`, string(body))
	require.Zero(t, b.publisher.n)

	_, body = b.operate(t, "POST", "/admin/v1/outbox/republish", `{"by":"ada","reason":"r","dry_run":false,"from":2}`)
	require.JSONEq(t, `{"result":{"dry_run":false,"count":2,"failed":0}}`, string(body))
	require.Equal(t, 2, b.publisher.n)
	actions := read[adminapi.Actions](t, b, "audit", adminapi.AuditQuery{Kind: "outbox"})
	require.Len(t, actions.Items, 2)
	require.Equal(t, "started", actions.Items[0].After)
	require.Zero(t, actions.Items[0].Count)
	require.Equal(t, "done", actions.Items[1].After)
	require.EqualValues(t, 2, actions.Items[1].Count)
	require.Equal(t, "ada", actions.Items[1].By)

	b.publisher.do = func([]*message.Message) error { return errors.New("no") }
	b.refuses(t, "POST", "outbox/republish", `{"by":"ada","reason":"r","dry_run":false,"from":2}`, 500, "internal")
	rows, err := audit.Find(t.Context(), b.pool, audit.Filter{Kind: "outbox", Limit: 1})
	require.NoError(t, err)
	require.Equal(t, "failed", rows[0].After)
	require.Zero(t, rows[0].Count)
	require.Equal(t, map[string]string{"outcome": "failed", "code": "unknown"}, rows[0].Detail)
}

func TestALongOperationOutlivesTheReadTimeout(t *testing.T) {
	t.Parallel()
	const readTimeout = time.Second // the request has to be there by then
	b := setup(t, func(_ *admin.Config, s *http.Server) { s.ReadTimeout = readTimeout })
	b.add(t, 1)
	b.publisher.do = func([]*message.Message) error {
		<-time.After(3 * readTimeout / 2) // until the server's timer has run out
		return nil
	}
	status, body := b.call(t, "POST", "/admin/v1/outbox/republish", `{"by":"ada","reason":"r","dry_run":false,"from":1}`)
	require.Equal(t, 200, status, string(body))
	require.Contains(t, string(body), `"count":1`)
	rows, err := audit.Find(t.Context(), b.pool, audit.Filter{Kind: "outbox", Limit: 10})
	require.NoError(t, err)
	require.Equal(t, "done", rows[1].After, "and its context was not ended either")
}

func TestReleaseAndDrop(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 2)
	b.exec(t, `insert into public.outbox_parked (topic, key, reason, permanent)
		values ('topic', 'k', 'too large', true)`)
	b.exec(t, `insert into public.outbox_held values ('topic', 'k', 1), ('topic', 'k', 2)`)
	status := read[adminapi.OutboxStatus](t, b, "outbox/status")
	require.EqualValues(t, 2, status.HeldEvents)
	require.Len(t, status.Parked, 1)
	require.NotZero(t, status.Parked[0].RetryAt)

	release := func(dryRun bool, drop string) {
		status, body := b.change(t, "outbox/release", dryRun, `,"topic":"topic","key":"k"`+drop)
		require.Equal(t, 200, status, string(body))
	}
	release(true, `,"drop":1`)
	held := func() (n int) {
		require.NoError(t, b.pool.QueryRow(t.Context(), `select count(*) from public.outbox_held`).Scan(&n))
		return n
	}
	require.Equal(t, 2, held(), "a dry run is rolled back")
	release(false, `,"drop":1`)
	require.Equal(t, 1, held())
	release(false, "")
	rows, err := audit.Of(t.Context(), b.pool, "outbox_key", "topic/k")
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []string{"drop", "release"}, []string{rows[0].Verb, rows[1].Verb})
}

func TestADatabaseThatIsDownIsSaidSo(t *testing.T) {
	t.Parallel()
	gone, err := pgxpool.New(context.Background(), "postgres://127.0.0.1:1/x")
	require.NoError(t, err)
	t.Cleanup(gone.Close)
	b := withoutDatabase(t, func(cfg *admin.Config, _ *http.Server) { cfg.Pool = gone })
	const republish = `{"by":"ada","reason":"r","dry_run":false,"from":1}`
	b.refuses(t, "GET", "outbox/status", "", http.StatusServiceUnavailable, "unavailable")
	b.refuses(t, "POST", "outbox/republish", republish, http.StatusServiceUnavailable, "unavailable")
	gone.Close() // as it is when the service has drained, and a request has outlived that
	b.refuses(t, "GET", "outbox/status", "", http.StatusServiceUnavailable, "shutting_down")
	b.refuses(t, "POST", "outbox/republish", republish, http.StatusServiceUnavailable, "shutting_down")
}

func TestAFailureInTheMiddleKeepsWhatIsDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 1001) // three pages
	b.publisher.do = func([]*message.Message) error {
		if b.publisher.n == 1000 {
			return errors.New("no")
		}
		return nil
	}
	status, body := b.call(t, "POST", "/admin/v1/outbox/republish", `{"by":"ada","reason":"r","dry_run":false,"from":1}`)
	require.Equal(t, 200, status)
	require.Regexp(t, `\{"done":1000\}\n\{"problem":.*"code":"internal"`, string(body))
	rows, err := audit.Find(t.Context(), b.pool, audit.Filter{Kind: "outbox", Limit: 10})
	require.NoError(t, err)
	require.EqualValues(t, 1000, rows[1].Count)
}
