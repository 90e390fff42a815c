package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/test/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "the-services-token"

type stub struct {
	mu      sync.Mutex
	answers map[string]string // by path
	asked   []string          // method, path and body of the operations
	meant   string            // the environment that the last one names
	looks   int               // at the stations
}

func (s *stub) set(path, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = answer
}

func (s *stub) operations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Twinbox-Service", r.Header.Get("Twinbox-Service"))
	if r.URL.Path == adminapi.StationsPath {
		s.looks++
	} else {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"code":"unauthorized","status":401,"detail":"no"}`)
			return
		}
		s.meant = r.Header.Get("Twinbox-Environment")
		s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	}
	answer, known := s.answers[r.URL.Path]
	if !known {
		w.WriteHeader(http.StatusNotFound)
		answer = `{"code":"not_found","status":404,"detail":"There is no such thing."}`
	}
	_, _ = io.WriteString(w, answer)
}

const theStations = `{"service":"customer","environment":"here","at":"2026-01-02T03:04:05Z","status":"ready",
	"causes":[],"stations":[
	{"kind":"http","name":"customer","passed":7,"refused":0,"waiting":0,"state":"well"},
	{"kind":"outbox","name":"customer","waiting":%d,"age_seconds":0.5,"state":"well"},
	{"kind":"relay","name":"customer","passed":7,"waiting":0,"state":"well"},
	{"kind":"topic","name":"customer.users.v1","passed":7,"state":"well"},
	{"kind":"inbox","name":"customer.profile","topic":"customer.users.v1","passed":7,"waiting":5,"age_seconds":1,
		"state":"well"}]}`

type bundle struct {
	stub    *stub
	console *Console
	url     string
	browser *http.Client
	stop    func()
}

func setup(t *testing.T, change func(*Config)) *bundle {
	t.Helper()
	b := &bundle{stub: &stub{answers: map[string]string{
		adminapi.StationsPath: fmt.Sprintf(theStations, 3),
	}}}
	server := httptest.NewServer(b.stub)
	t.Cleanup(server.Close)
	service, err := client.New("customer", server.URL, token)
	require.NoError(t, err)
	cfg := Config{
		Services: []*client.Service{service}, Interval: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	b.console = New(cfg)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.url = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.console.Run(ctx, ln) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{}
	b.browser = &http.Client{Jar: jar, Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		b.stop()
	})
	return b
}

func (b *bundle) signIn(t *testing.T) *bundle {
	t.Helper()
	status, _ := b.get(t, b.console.SignIn())
	require.Equal(t, http.StatusOK, status)
	return b
}

func (b *bundle) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return b.do(t, http.MethodGet, path, "", nil)
}

func (b *bundle) do(t *testing.T, method, path, body string, header http.Header) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	maps.Copy(request.Header, header)
	request.Host = header.Get("Host")
	response, err := b.browser.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NotContains(t, string(content), token)
	require.NotContains(t, fmt.Sprint(response.Header), token)
	return response.StatusCode, string(content)
}

func TestTheFlowIsLive(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	shows := func(text string) func() bool {
		return func() bool {
			_, page := b.get(t, "/")
			return strings.Contains(page, text)
		}
	}
	const waiting = `<dt>waiting</dt><dd data-figure="1">%d</dd>`
	testkit.Until(t, shows("All is well"))
	testkit.Until(t, shows(fmt.Sprintf(waiting, 3)))
	b.stub.set(adminapi.StationsPath, fmt.Sprintf(theStations, 41))
	testkit.Until(t, shows(fmt.Sprintf(waiting, 41)))
	_, page := b.get(t, "/")
	require.Contains(t, page, "customer.users.v1")
	require.Contains(t, page, "customer.profile")
	require.Empty(t, b.stub.operations(), "the flow needs no other operation")
	b.stub.set(adminapi.StationsPath, strings.Replace(fmt.Sprintf(theStations, 3), `"causes":[]`, `"causes":[{
		"code":"keys_parked","station":"relay","what":"1 key.","means":"m","do":"d","stops":false}]`, 1))
	testkit.Until(t, shows("1 key."))
	require.False(t, shows("Release…")(), "a browser without a session has no buttons")
	b.signIn(t)
	require.True(t, shows("Release…")())
	b.stub.set(adminapi.StationsPath, "none")
	testkit.Until(t, shows("The service does not answer."))
	_, page = b.get(t, "/")
	require.NotContains(t, page, "All is well")
	require.Contains(t, page, `data-state="unknown"`)
	b.stub.set(adminapi.StationsPath, fmt.Sprintf(theStations, 0))
	testkit.Until(t, shows("All is well"))
}

func TestViewersShareOnePoll(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Interval = 50 * time.Millisecond })
	began := time.Now()
	var viewers sync.WaitGroup
	for range 10 {
		viewers.Go(func() {
			for range 10 {
				status, _ := b.get(t, "/")
				require.Equal(t, http.StatusOK, status)
			}
		})
	}
	viewers.Wait()
	b.stub.mu.Lock()
	defer b.stub.mu.Unlock()
	require.LessOrEqual(t, b.stub.looks, int(time.Since(began)/(50*time.Millisecond))+2)
}

func TestASessionBeginsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	link := b.console.SignIn()
	_, page := b.get(t, "/")
	require.Contains(t, page, "Read-only")
	_, page = b.get(t, link)
	require.NotContains(t, page, "Read-only")
	require.Contains(t, page, "Dead letters")
	_, page = b.get(t, link)
	require.NotContains(t, page, "Read-only", "the browser that is signed in may come by the link again")
	b.browser.Jar, _ = cookiejar.New(nil)
	for _, path := range []string{link, "/session/", "/session/x"} {
		status, _ := b.get(t, path)
		require.NotEqual(t, http.StatusOK, status, path)
	}
}

func TestStrangers(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Hosts = []string{"ops.example.org"} }).signIn(t)
	for host, want := range map[string]int{
		"evil.example": http.StatusMisdirectedRequest, "ops.example.org": http.StatusOK, "localhost:1": http.StatusOK,
	} {
		status, answer := b.do(t, http.MethodGet, "/", "", http.Header{"Host": {host}})
		require.Equal(t, want, status, host)
		if want == http.StatusMisdirectedRequest {
			require.Contains(t, answer, "with --host of twinbox console", "the console's own setting, not the services'")
		}
	}
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"http://127.0.0.1:8025"}},
	} {
		status, _ := b.do(t, http.MethodPost, "/changes", "verb=replay", header)
		require.Equal(t, http.StatusForbidden, status)
	}
}
