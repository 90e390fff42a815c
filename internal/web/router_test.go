package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/testkit"
)

func TestAnAPIShowsItsDocument(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{Document: []byte(`{"openapi":"3.1.0"}`)}, &web.Server{})
	got := s.send(t, http.MethodGet, "/openapi.json", nil)
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "application/json", got.header.Get("Content-Type"))
	require.Equal(t, `{"openapi":"3.1.0"}`, got.body)
	without := serve(t, web.Config{}, &web.Server{})
	require.Equal(t, web.CodeNotFound, without.send(t, http.MethodGet, "/openapi.json", nil).problem(t).Code)
}

func TestMethodsAndPaths(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	const onThing, onThings = "GET, PATCH, OPTIONS", "POST, OPTIONS"
	for _, test := range []struct {
		method, path string
		status       int
		code         web.Code
		allow        string
	}{
		{"GET", "/v1/things", 405, web.CodeMethodNotAllowed, onThings},
		{"PUT", "/v1/things", 405, web.CodeMethodNotAllowed, onThings},
		{"HEAD", "/v1/things/1", 405, "", onThing},
		{"TRACE", "/v1/things/1", 405, web.CodeMethodNotAllowed, onThing},
		{"BREW", "/v1/things/1", 405, web.CodeMethodNotAllowed, onThing},
		{"OPTIONS", "/v1/things", 204, "", onThings},
		{"OPTIONS", "/v1/things/1", 204, "", onThing},
		{"OPTIONS", "/nowhere", 404, web.CodeNotFound, ""},
		{"BREW", "/nowhere", 404, web.CodeNotFound, ""},
		{"GET", "/", 404, web.CodeNotFound, ""},
		{"GET", "/v1/things/", 404, web.CodeNotFound, ""},
		{"GET", "/" + strings.Repeat("x/", 2000), 404, web.CodeNotFound, ""},
	} {
		t.Run(test.method+" "+test.path[:min(20, len(test.path))], func(t *testing.T) {
			t.Parallel()
			got := s.send(t, test.method, test.path, map[string]string{"X-Secret": secret})
			require.Equal(t, test.status, got.status, got.body)
			require.Equal(t, test.allow, got.header.Get("Allow"))
			if test.code != "" {
				require.Equal(t, test.code, got.problem(t).Code)
			}
			require.NotContains(t, got.body, secret, "TRACE must not echo")
		})
	}
}

func TestEveryAnswerHasTheSameHeaders(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	ids := map[string]bool{}
	for _, path := range []string{"/v1/things/1", "/nowhere", "/panic", "/v1/things"} {
		got := s.send(t, "GET", path, map[string]string{"X-Request-Id": "mine"})
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", got.header.Get("Referrer-Policy"))
		require.Contains(t, got.header.Get("Content-Security-Policy"), "default-src 'none'")
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		require.Empty(t, got.header.Get("Server"))
		ids[got.header.Get("X-Request-Id")] = true
	}
	require.Len(t, ids, 4, "request ids repeat")
	require.NotContains(t, ids, "mine")
}

func TestAPanicIsAProblemAndTheServerGoesOn(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	got := s.send(t, "GET", "/panic", nil)
	require.Equal(t, http.StatusInternalServerError, got.status)
	require.Equal(t, web.CodeInternal, got.problem(t).Code)
	require.NotContains(t, got.body, "cheese")
	require.Contains(t, s.log.String(), "out of cheese")
	require.Contains(t, s.log.String(), "main_test.go", "the log needs the stack")
	require.Equal(t, http.StatusOK, s.send(t, "GET", "/v1/things/1", nil).status)
}

func TestAPanicInTheMiddleCutsTheAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/panic-late", http.NoBody)
	require.NoError(t, err)
	res, err := client(t).Do(req)
	if err == nil {
		_, err = io.ReadAll(res.Body)
		require.NoError(t, res.Body.Close())
	}
	require.Error(t, err, "half an answer must not look whole")
}

func TestARequestThatTakesTooLong(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{RequestTimeout: 50 * time.Millisecond}, &web.Server{})
	got := s.send(t, "GET", "/wait", nil)
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Equal(t, web.CodeTimeout, got.problem(t).Code)
	require.Equal(t, "1", got.header.Get("Retry-After"))
}

func TestRateLimitPerClient(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{RateLimit: 3}, &web.Server{})
	for range 3 {
		require.Equal(t, http.StatusOK, s.send(t, "GET", "/v1/things/1", nil).status)
	}
	for _, forwarded := range []string{"", "203.0.113.7"} { // no proxy is trusted
		got := s.send(t, "GET", "/v1/things/1", map[string]string{"X-Forwarded-For": forwarded})
		require.Equal(t, http.StatusTooManyRequests, got.status)
		require.Equal(t, web.CodeRateLimited, got.problem(t).Code)
		require.Equal(t, "60", got.header.Get("Retry-After"))
	}
}

func TestTheLogHasNoPersonalData(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	s.send(t, "GET", "/v1/things/"+secret+"?token="+secret, map[string]string{"User-Agent": secret})
	s.send(t, "GET", "/"+secret, nil)
	s.send(t, strings.ToUpper(secret), "/v1/things/1", nil)
	s.post(t, strings.NewReader(`{"`+secret+`":1}`), nil)
	testkit.Until(t, func() bool { return strings.Count(s.log.String(), `"msg":"request"`) == 4 })
	log := s.log.String()
	require.NotContains(t, strings.ToLower(log), secret)
	require.NotContains(t, log, "127.0.0.1")
	require.Contains(t, log, `"route":"/v1/things/{id}"`)
	require.Contains(t, log, `"method":"_OTHER"`)
	require.Contains(t, log, `"code":"unknown_member"`)
}

var errKnown = errors.New("the database is " + secret)

func TestForeignErrorsAreTranslated(t *testing.T) {
	t.Parallel()
	mapError := func(err error) *web.Error {
		if errors.Is(err, errKnown) {
			return &web.Error{Status: 503, Code: web.CodeUnavailable, RetryAfter: 1500 * time.Millisecond, Cause: err}
		}
		return nil
	}
	for name, test := range map[string]struct {
		err        error
		status     int
		code       web.Code
		retryAfter string
	}{
		"known":     {fmt.Errorf("select user: %w", errKnown), 503, web.CodeUnavailable, "2"},
		"unknown":   {errors.New(secret), 500, web.CodeInternal, ""},
		"deadline":  {fmt.Errorf("select: %w", context.DeadlineExceeded), 503, web.CodeTimeout, "1"},
		"cancelled": {context.Canceled, 500, web.CodeInternal, ""}, // not by this request: a defect
		"ours":      {fmt.Errorf("x: %w", web.ParameterError(400, "bad", "p", "is bad")), 400, "bad", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &safeBuffer{}
			router := web.NewRouter(web.Config{MapError: mapError}, slog.New(slog.NewJSONHandler(log, nil)))
			router.Get("/", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"1"`)
				web.WriteProblem(w, r, test.err)
			})
			recorder := httptest.NewRecorder()
			router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			got := answer{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
			require.Equal(t, test.status, got.status)
			require.Equal(t, test.code, got.problem(t).Code)
			require.Equal(t, test.retryAfter, got.header.Get("Retry-After"))
			require.NotContains(t, got.body, secret)
			require.Empty(t, got.header.Get("ETag"), "the ETag of something else")
			if test.status >= 500 {
				require.Contains(t, log.String(), test.err.Error(), "the log must know why")
			}
		})
	}
}

// An answer that has begun keeps its status.
func TestAProblemInTheMiddleIsLogged(t *testing.T) {
	t.Parallel()
	for level, test := range map[string]error{
		"ERROR": errors.New(secret), "INFO": web.ParameterError(http.StatusBadRequest, "bad", "p", "is bad"),
	} {
		log := &safeBuffer{}
		router := web.NewRouter(web.Config{}, slog.New(slog.NewJSONHandler(log, nil)))
		router.Get("/", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			require.NoError(t, json.NewEncoder(w).Encode(web.ProblemOf(r, test)))
		})
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		require.Equal(t, http.StatusOK, recorder.Code)
		require.NotContains(t, recorder.Body.String(), secret)
		var line struct {
			Level, Error string
			Status       int
		}
		require.NoError(t, json.Unmarshal([]byte(log.String()), &line))
		require.Equal(t, level, line.Level)
		require.Equal(t, http.StatusOK, line.Status, "which is what was sent")
		require.Equal(t, level == "ERROR", line.Error == secret, "the log must know why")
	}
}

func TestWriteProblemWorksWithoutTheRouter(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	web.WriteProblem(recorder, request, &web.Error{Status: 404, Code: web.CodeNotFound})
	got := answer{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
	require.Equal(t, "Not found.", got.problem(t).Detail)
}

func TestAnAnswerThatCannotBeEncodedIsADefect(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	web.WriteJSON(recorder, httptest.NewRequest(http.MethodGet, "/", http.NoBody), http.StatusOK, func() {})
	require.Equal(t, http.StatusInternalServerError, recorder.Code)
}

func TestErrorsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &web.Error{Status: 404, Code: web.CodeNotFound, Detail: "gone"}, "404 not_found: gone")
	wrapped := &web.Error{Status: 503, Code: web.CodeUnavailable, Cause: errKnown}
	require.ErrorIs(t, wrapped, errKnown)
	require.EqualError(t, wrapped, "503 unavailable: "+errKnown.Error())
	require.Equal(t, "Malformed JSON", web.CodeMalformedJSON.Title())
	require.Empty(t, web.Code("").Title())
}
