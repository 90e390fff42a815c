package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/service"
	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

// watched is a service in this process, its log and its admin listener.
type watched struct {
	name, admin string
	log         *logLines
	stop        func() // requires a clean stop
}

func (h *stack) watch(t *testing.T, name string) *watched {
	t.Helper()
	w := &watched{name: name, log: &logLines{}}
	at, stop := h.startWith(t, name, h.environ(name), slog.New(slog.NewJSONHandler(w.log, nil)).With("service", name))
	w.admin, w.stop = at.Admin, stop
	t.Cleanup(func() {
		w.stop()
		if t.Failed() {
			t.Logf("warnings of %s: %v", name, w.warnings())
		}
	})
	return w
}

type readiness struct {
	code   int
	report service.Readiness
}

func (w *watched) readyz(t *testing.T) (got readiness) {
	t.Helper()
	code, body := servicetest.Get(t, "http://"+w.admin+"/readyz")
	got.code = code
	require.NoError(t, json.Unmarshal([]byte(body), &got.report))
	return got
}

type logLines struct{ lockedBuffer }

type line struct {
	Service, Level, Msg, Dependency, Error string

	EventID       string `json:"event_id"`
	CorrelationID string `json:"correlation_id"`
}

func (l *logLines) lines() (list []line) {
	for raw := range bytes.Lines([]byte(l.String())) {
		var one line
		if json.Unmarshal(raw, &one) == nil {
			list = append(list, one)
		}
	}
	return list
}

func (w *watched) warnings() []line {
	return slices.DeleteFunc(w.log.lines(), func(l line) bool { return l.Level == "INFO" })
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (w *watched) requireNotReady(t *testing.T, name string) {
	t.Helper()
	var got readiness
	testkit.Until(t, func() bool {
		got = w.readyz(t)
		var failing []string
		for _, check := range got.report.Checks {
			if check.Status == service.StatusFailing {
				failing = append(failing, check.Name)
			}
		}
		return got.code == http.StatusServiceUnavailable && slices.Equal(failing, []string{name})
	}, "%s must name its %s and nothing else: %+v", w.name, name, &got)
}

func (w *watched) requireSaidOnce(t *testing.T, name string, outages int) {
	t.Helper()
	lines := w.log.lines()
	said := func(msg string) (n int) {
		for _, line := range lines {
			if line.Msg == msg && line.Dependency == name {
				n++
			}
		}
		return n
	}
	require.Equal(t, outages, said("dependency is down"), "%v", lines)
	require.Equal(t, outages, said("dependency is back"), "%v", lines)
	require.LessOrEqual(t, len(w.warnings()), fewLines*outages, "%v", w.warnings())
}

// fewLines bounds the warnings of one outage: each part writes some before the circuit opens.
const fewLines = 12

// metrics is empty when the service does not answer.
func (w *watched) metrics(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.admin+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(content))
	return string(content)
}

func sumOf(metrics, name, label string) (sum float64, found bool) {
	for line := range strings.Lines(metrics) {
		rest, is := strings.CutPrefix(strings.TrimSpace(line), name)
		if !is || rest == "" || rest[0] != '{' && rest[0] != ' ' || !strings.Contains(rest, label) {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err == nil {
			sum, found = sum+value, true
		}
	}
	return sum, found
}

// A relay that heals writes these lines. A consumer that reads again writes the first two, for its group.
const (
	databaseBack = "the database went back"
	brokerBack   = "the broker went back"
	healed       = "healed"
)

func (w *watched) requireNoStaleEvent(t *testing.T) {
	t.Helper()
	stale, _ := sumOf(w.metrics(t), "inbox_messages_total", `outcome="stale"`)
	require.Zero(t, stale)
}

func (w *watched) times(text string) (n int) {
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, `"msg":"`+text+`"`) && !strings.Contains(line, `"group":`) {
			n++
		}
	}
	return n
}

func (w *watched) requireNothingToSee(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	for _, text := range []string{databaseBack, brokerBack} {
		require.Zero(t, w.times(text), text)
	}
	require.Zero(t, count(t, db, `select count(*) from outbox_lost`))
	require.Zero(t, count(t, db, `select count(*) from outbox_cursor
		where refused is not null or database_back_at is not null or broker_back_at is not null`))
}
