package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
)

// httpRequest is one request of an .http file.
type httpRequest struct {
	name, method, target string
	headers              http.Header
	body                 string
}

// readRequests reads the little of the format that the files use.
func readRequests(t *testing.T, file string) (requests []httpRequest, variables map[string]string) {
	t.Helper()
	data, err := api.Files.ReadFile(file)
	require.NoError(t, err)
	variables = map[string]string{}
	for part := range strings.SplitSeq(string(data), "\n###") {
		request := httpRequest{headers: http.Header{}}
		head, body, _ := strings.Cut(part, "\n\n")
		if strings.HasPrefix(head, "#") { // the text above the first request
			head = part
		}
		for line := range strings.SplitSeq(head, "\n") {
			readLine(line, &request, variables)
		}
		if request.method != "" {
			request.body = strings.TrimSpace(body)
			requests = append(requests, request)
		}
	}
	return requests, variables
}

func readLine(line string, request *httpRequest, variables map[string]string) {
	if name, value, ok := strings.Cut(line, " = "); ok && strings.HasPrefix(line, "@") {
		variables[strings.TrimPrefix(name, "@")] = value
		return
	}
	if name, ok := strings.CutPrefix(line, "# @name "); ok {
		request.name = name
		return
	}
	if match := requestLine.FindStringSubmatch(line); match != nil {
		request.method, request.target = match[1], match[2]
		return
	}
	if name, value, ok := strings.Cut(line, ": "); ok && request.method != "" {
		request.headers.Add(name, value)
	}
}

var (
	requestLine = regexp.MustCompile(`^(GET|POST|PATCH) (\S+)$`)
	reference   = regexp.MustCompile(`\{\{([^}]+)\}\}`)
)

func TestRequestsFollowTheAPI(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	check, known := checker(t, root), operations(t, root)
	requests, variables := readRequests(t, "requests.http")
	require.GreaterOrEqual(t, len(requests), 7)
	named, used := map[string]bool{}, map[string]bool{}
	for _, request := range requests {
		require.NotEmpty(t, request.name, request.target)
		require.False(t, named[request.name], "%s is there twice", request.name)
		for _, match := range reference.FindAllStringSubmatch(request.target+request.body, -1) {
			origin, _, _ := strings.Cut(match[1], ".")
			require.True(t, variables[origin] != "" || named[origin], "%s uses %s before it is known", request.name, origin)
		}
		named[request.name] = true
		target, ours := strings.CutPrefix(request.target, "{{customer}}")
		if !ours {
			require.True(t, strings.HasPrefix(request.target, "{{mailbox}}/api/messages"), request.target)
			continue
		}
		path, _, _ := strings.Cut(reference.ReplaceAllString(target, "{id}"), "?")
		op, found := known[request.method+" "+path]
		require.True(t, found, "%s %s is not in openapi.yaml", request.method, path)
		used[op.name] = true
		requireBody(t, check, op, request)
	}
	for name := range known {
		require.True(t, used[name] || strings.HasPrefix(name, "HEAD"), "%s is not in requests.http", name)
	}
}

func requireBody(t *testing.T, check func(string, any) error, op operation, request httpRequest) {
	t.Helper()
	if op.body == nil {
		require.Empty(t, request.body)
		return
	}
	require.Equal(t, "application/json", request.headers.Get("Content-Type"))
	schema := op.body["application/json"].(object)["schema"].(object)["$ref"].(string)
	var body any
	require.NoError(t, json.Unmarshal([]byte(request.body), &body), request.name)
	require.NoError(t, check(schema, body), request.name)
	if strings.HasSuffix(op.name, "/signups") {
		require.NotEmpty(t, request.headers.Get("Idempotency-Key"), request.name)
	}
}

// Every request of operations.http is one that admin.yaml knows, with a body of its schema, and changes nothing as it
// stands there; every question that needs no id is there.
func TestOperationsFollowTheAPI(t *testing.T) {
	t.Parallel()
	root := document(t, "admin.yaml")
	check, known := checker(t, root), operations(t, root)
	requests, variables := readRequests(t, "operations.http")
	used := map[string]bool{}
	for _, request := range requests {
		base := reference.FindStringSubmatch(request.target)
		require.NotNil(t, base, request.name)
		require.True(t, strings.HasPrefix(variables[base[1]], "http://127.0.0.1:808"), request.name)
		path, _, _ := strings.Cut(strings.TrimPrefix(request.target, base[0]), "?")
		op, found := known[request.method+" "+path]
		require.True(t, found, "%s %s is not in admin.yaml", request.method, path)
		used[op.name] = true
		require.Equal(t, "Bearer {{token}}", request.headers.Get("Authorization"), request.name)
		requireBody(t, check, op, request)
		if strings.Contains(request.body, `"reason"`) {
			require.Contains(t, request.body, `"dry_run": true`, request.name)
		}
	}
	for name := range known {
		require.True(t, used[name] || !strings.HasPrefix(name, "GET") || strings.Contains(name, "{"),
			"%s is not in operations.http", name)
	}
}
