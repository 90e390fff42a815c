package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"example.com/twinbox/internal/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is part of no assertion.
const patience = 30 * time.Second

type thing struct {
	Email string `json:"email"`
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Note  *note  `json:"note,omitempty"`
}

type note struct {
	Text string `json:"text"`
}

const goodThing = `{"email":"ada@example.org","name":"Ada","count":1}`

type testServer struct {
	addr     string
	created  atomic.Int64 // requests that reached the handler
	log      *safeBuffer
	entered  chan struct{} // one element per request in /hold
	release  chan struct{} // closed or sent to: /hold answers
	stop     context.CancelFunc
	finished chan error
}

func serve(t testing.TB, config web.Config, server *web.Server) *testServer {
	t.Helper()
	s := &testServer{
		log:      &safeBuffer{},
		entered:  make(chan struct{}, 10),
		release:  make(chan struct{}),
		finished: make(chan error, 1),
	}
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	router := web.NewRouter(config, log)
	s.mount(router)
	server.Handler, server.Log = router, log
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	go func() { s.finished <- server.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-s.finished:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the server did not stop")
		}
	})
	return s
}

func (s *testServer) mount(r chi.Router) {
	r.Post("/v1/things", func(w http.ResponseWriter, r *http.Request) {
		if _, err := web.IdempotencyKey(r); err != nil {
			web.WriteProblem(w, r, err)
			return
		}
		value, err := web.Decode[thing](w, r)
		if err != nil {
			web.WriteProblem(w, r, err)
			return
		}
		s.created.Add(1)
		web.WriteJSON(w, r, http.StatusCreated, value)
	})
	r.Get("/v1/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !web.NotModified(w, r, web.ETag(3, "")) {
			web.WriteJSON(w, r, http.StatusOK, map[string]string{"id": chi.URLParam(r, "id")})
		}
	})
	r.Patch("/v1/things/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := web.CheckIfMatch(r, 3); err != nil {
			web.WriteProblem(w, r, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("out of cheese") })
	r.Get("/panic-late", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
		panic("out of cheese")
	})
	r.Get("/wait", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		web.WriteProblem(w, r, r.Context().Err())
	})
	r.Get("/hold", func(w http.ResponseWriter, _ *http.Request) {
		s.entered <- struct{}{}
		<-s.release
		w.WriteHeader(http.StatusOK)
	})
}

func client(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// An empty value removes a default header.
func (s *testServer) post(t testing.TB, body io.Reader, headers map[string]string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+"/v1/things", body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", `"k1"`)
	for name, value := range headers {
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	return do(t, req)
}

func (s *testServer) send(t testing.TB, method, path string, headers map[string]string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+path, http.NoBody)
	require.NoError(t, err)
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return do(t, req)
}

type answer struct {
	status int
	header http.Header
	body   string
	closes bool // the server announced the end of the connection
}

func do(t testing.TB, req *http.Request) answer {
	t.Helper()
	res, err := client(t).Do(req)
	require.NoError(t, err)
	return read(t, res)
}

func read(t testing.TB, res *http.Response) answer {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return answer{status: res.StatusCode, header: res.Header, body: string(body), closes: res.Close}
}

func (a answer) problem(t testing.TB) web.Problem {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"), a.body)
	var p web.Problem
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&p), a.body)
	require.Equal(t, a.status, p.Status)
	require.Equal(t, "https://example.com/twinbox/problems/"+string(p.Code), p.Type)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	require.Equal(t, a.header.Get("X-Request-Id"), p.RequestID)
	require.Equal(t, "urn:uuid:"+p.RequestID, p.Instance)
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	return p
}

func (s *testServer) raw(t testing.TB, text string) *rawConn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return &rawConn{Conn: conn, reader: bufio.NewReader(conn)}
}

type rawConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *rawConn) answer(t testing.TB) answer {
	t.Helper()
	res, err := http.ReadResponse(c.reader, nil)
	require.NoError(t, err)
	return read(t, res)
}

func (c *rawConn) closed(t testing.TB) {
	t.Helper()
	rest, err := io.ReadAll(c.reader)
	if err != nil {
		require.ErrorContains(t, err, "reset")
	}
	require.Empty(t, string(rest))
}

type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
