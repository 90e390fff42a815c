package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/event"
	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/outbox"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/web"
	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type bundle struct {
	pool      *pgxpool.Pool
	publisher *publisher
	server    *httptest.Server
	client    *http.Client
}

type option = func(*admin.Config, *http.Server)

func setup(t *testing.T, change ...option) *bundle {
	t.Helper()
	pool := pgtest.New(t, migrations.Audit, migrations.Outbox, migrations.Inbox, migrations.Lease)
	b := withoutDatabase(t, append([]option{func(cfg *admin.Config, _ *http.Server) { cfg.Pool = pool }}, change...)...)
	b.pool = pool
	return b
}

func withConsumers(consumers ...admin.Consumer) option {
	return func(cfg *admin.Config, _ *http.Server) { cfg.Consumers = consumers }
}

func withoutDatabase(t *testing.T, change ...option) *bundle {
	t.Helper()
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	b := &bundle{publisher: &publisher{}, client: &http.Client{Transport: transport}}
	cfg := admin.Config{
		Service: "test", Environment: "here", Token: token, Publisher: b.publisher,
		Readiness: func() service.Readiness { return service.Readiness{Status: service.StatusReady} },
		Metrics:   prometheus.NewRegistry(), Topics: &brokerTopics{},
		Log: slog.New(slog.DiscardHandler),
	}
	b.server = httptest.NewUnstartedServer(nil)
	for _, c := range change {
		c(&cfg, b.server.Config)
	}
	handler, err := admin.New(cfg)
	require.NoError(t, err)
	b.server.Config.Handler = handler
	b.server.Start()
	t.Cleanup(b.server.Close)
	return b
}

type publisher struct {
	do func(msgs []*message.Message) error
	n  int
}

func (p *publisher) PublishContext(_ context.Context, _ string, msgs ...*message.Message) error {
	if p.do != nil {
		if err := p.do(msgs); err != nil {
			return err
		}
	}
	p.n += len(msgs)
	return nil
}

func (b *bundle) call(t *testing.T, method, path, body string) (int, []byte) {
	t.Helper()
	return b.callAs(t, "Bearer "+token, method, path, body)
}

// operate returns the last line. A problem in it replaces the status, as where no line came before it.
func (b *bundle) operate(t *testing.T, method, path, body string) (int, []byte) {
	t.Helper()
	status, content := b.call(t, method, path, body)
	last := content[bytes.LastIndexByte(bytes.TrimSpace(content), '\n')+1:]
	var line struct{ Problem json.RawMessage }
	if json.Unmarshal(last, &line) != nil || line.Problem == nil {
		return status, last
	}
	var problem web.Problem
	require.NoError(t, json.Unmarshal(line.Problem, &problem))
	return problem.Status, line.Problem
}

func (b *bundle) callAs(t *testing.T, authorization, method, path, body string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.server.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Authorization", authorization)
	if len(body) > 1<<20 { // to read the answer to a body that is refused unread, it must not be on its way already
		request.Header.Set("Expect", "100-continue")
	}
	response, err := b.client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, content
}

// read asks with conditions, if there are some.
func read[T any](t *testing.T, b *bundle, path string, conditions ...any) (answer T) {
	t.Helper()
	method, body := http.MethodGet, ""
	for _, asked := range conditions {
		method, body = http.MethodPost, text(t, asked)
	}
	status, content := b.call(t, method, "/admin/v1/"+path, body)
	require.Equal(t, http.StatusOK, status, string(content))
	require.NoError(t, json.Unmarshal(content, &answer))
	return answer
}

func (b *bundle) refuses(t *testing.T, method, path, body string, status int, code string) (problem string) {
	t.Helper()
	given, content := b.operate(t, method, "/admin/v1/"+path, body)
	requireProblem(t, given, content, status, code)
	return string(content)
}

// change has a name and a reason.
func (b *bundle) change(t *testing.T, path string, dryRun bool, members string) (int, []byte) {
	t.Helper()
	body := fmt.Sprintf(`{"by":"ada","reason":"r","dry_run":%t%s}`, dryRun, members)
	return b.call(t, http.MethodPost, "/admin/v1/"+path, body)
}

func (b *bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func requireProblem(t *testing.T, status int, body []byte, wantStatus int, code string) {
	t.Helper()
	var problem web.Problem
	require.NoError(t, json.Unmarshal(body, &problem), string(body))
	require.Equal(t, wantStatus, status, string(body))
	require.Equal(t, code, string(problem.Code))
}

// add moves the cursor as a relay would, without publishing.
func (b *bundle) add(t *testing.T, n int) {
	t.Helper()
	o, err := outbox.New(outbox.Config{Source: "/test"})
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		one := event.Event{Type: "t.v1", Topic: "topic", Key: "k", Data: []byte(`{}`)}
		_, err := o.Add(t.Context(), tx, slices.Repeat([]event.Event{one}, n)...)
		return err
	}))
	b.exec(t, `update public.outbox_cursor set done = pg_current_snapshot(), head = $1`, n)
}
