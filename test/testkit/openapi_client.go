package testkit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// APIClient compares each answer of an API with its document.
type APIClient struct {
	URL      string
	Document *OpenAPI
}

// ServeAPI serves the handler until the test ends.
func ServeAPI(t testing.TB, handler http.Handler, document *OpenAPI) *APIClient {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &APIClient{server.URL, document}
}

// ServeAPILate is [ServeAPI] with a deadline that passes after the head. The handler still reads the first 4 KiB, which
// came with the head.
func ServeAPILate(t testing.TB, handler http.Handler, document *OpenAPI) *APIClient {
	t.Helper()
	return ServeAPI(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now()); err != nil {
			panic(err)
		}
		handler.ServeHTTP(w, r)
	}), document)
}

type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request. A body is JSON unless the headers (names and values alternate) have another type.
func (c *APIClient) Do(t testing.TB, method, path, body string, headers ...string) Answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	// DisableKeepAlives would make the server reset the rest of a refused body, and perhaps lose the refusal.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	c.Document.RequireDeclared(t, request, response, read)
	return Answer{response.StatusCode, response.Header, read}
}

// JSON returns the body, an object.
func (a Answer) JSON(t testing.TB) (object map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.Body, &object), string(a.Body))
	return object
}

// Code returns the code of a problem.
func (a Answer) Code(t testing.TB) string {
	t.Helper()
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"), string(a.Body))
	problem := a.JSON(t)
	require.EqualValues(t, a.Status, problem["status"])
	return problem["code"].(string)
}
