package testkit

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
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

func (a Answer) JSON(t testing.TB) (object map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.Body, &object), string(a.Body))
	return object
}

func (a Answer) Code(t testing.TB) string {
	t.Helper()
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"), string(a.Body))
	problem := a.JSON(t)
	require.EqualValues(t, a.Status, problem["status"])
	return problem["code"].(string)
}

type Ask struct {
	On         *APIClient
	Path, Body string
	Headers    []string
}

func (c *APIClient) Ask(path, body string, headers ...string) Ask { return Ask{c, path, body, headers} }

// FaultyAPI are services that answer a good request with a problem.
type FaultyAPI struct {
	Healthy *APIClient // for faults of the body alone
	Limited *APIClient // to one request per client; nil without a limit
	Broken  *APIClient // without its tables
	Away    *APIClient // without its database
	Late    *APIClient // see [ServeAPILate]
}

// Add adds the answers to good requests over the limit, with a defect or without a database, and to late, too long or
// differently typed bodies.
func (f FaultyAPI) Add(t testing.TB, asks, good map[string]Ask) {
	t.Helper()
	if f.Limited != nil {
		first := f.Limited.Do(t, http.MethodGet, "/v2", "")
		require.Equal(t, http.StatusNotFound, first.Status, "the only one that is allowed")
	}
	for operation, a := range good {
		if f.Limited != nil {
			asks[operation+" 429"] = f.Limited.Ask(a.Path, a.Body)
		}
		asks[operation+" 500"] = f.Broken.Ask(a.Path, a.Body)
		asks[operation+" 503"] = f.Away.Ask(a.Path, a.Body)
		if a.Body == "" {
			continue
		}
		asks[operation+" 408"] = f.Late.Ask(a.Path, strings.Repeat(" ", 16<<10)+a.Body)
		asks[operation+" 413"] = f.Healthy.Ask(a.Path, strings.Repeat(" ", 64<<10)+a.Body)
		asks[operation+" 415"] = f.Healthy.Ask(a.Path, a.Body, "Content-Type", "text/plain")
	}
}

// RequireEach sends a request for each of [OpenAPI.Responses], and fails the test where one is missing in asks or does
// not come.
func (d *OpenAPI) RequireEach(t testing.TB, asks map[string]Ask) {
	t.Helper()
	declared, asked := d.Responses(), slices.Sorted(maps.Keys(asks))
	require.Empty(t, without(declared, asked), "declared responses for which there is no request")
	require.Empty(t, without(asked, declared), "requests for responses that are not declared")
	for name, ask := range asks {
		parts := strings.Fields(name) // method, path, status, and the form where there are several
		a := ask.On.Do(t, parts[0], ask.Path, ask.Body, ask.Headers...)
		require.Equal(t, parts[2], strconv.Itoa(a.Status), "%s: %s", name, a.Body)
		if len(parts) > 3 {
			require.Contains(t, a.Header.Get("Content-Type"), parts[3], name)
		}
	}
}

func without(names, other []string) []string {
	return slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(other, name)
	})))
}
