package api_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/dev/httpfile"
)

func readRequests(t *testing.T, name string) httpfile.File {
	t.Helper()
	content, err := api.Files.ReadFile(name)
	require.NoError(t, err)
	file, err := httpfile.Parse(string(content))
	require.NoError(t, err, name)
	return file
}

var reference = regexp.MustCompile(`\{\{([^}]+)\}\}`)

func TestRequestsFollowTheAPI(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	check, known := checker(t, root), operations(t, root)
	file := readRequests(t, "requests.http")
	require.GreaterOrEqual(t, len(file.Requests), 7)
	used := map[string]bool{}
	for _, request := range file.Requests {
		target, ours := strings.CutPrefix(request.Target, "{{customer}}")
		if !ours {
			require.Equal(t, "{{mailbox}}/view/latest.txt", request.Target, "the mailbox and Mailpit answer it alike")
			continue
		}
		path, _, _ := strings.Cut(reference.ReplaceAllString(target, "{id}"), "?")
		op, found := known[request.Method+" "+path]
		require.True(t, found, "%s %s is not in openapi.yaml", request.Method, path)
		used[op.name] = true
		requireBody(t, check, op, request)
	}
	for name := range known {
		require.True(t, used[name] || strings.HasPrefix(name, "HEAD"), "%s is not in requests.http", name)
	}
}

func requireBody(t *testing.T, check func(string, any) error, op operation, request httpfile.Request) {
	t.Helper()
	if op.body == nil {
		require.Empty(t, request.Body)
		return
	}
	require.Equal(t, "application/json", request.Header.Get("Content-Type"))
	schema := op.body["application/json"].(object)["schema"].(object)["$ref"].(string)
	var body any
	require.NoError(t, json.Unmarshal([]byte(request.Body), &body), request.Name)
	require.NoError(t, check(schema, body), request.Name)
}

// Every request of operations.http is one that admin.yaml knows, with a body of its schema, and changes nothing as it
// stands there; every question that needs no id is there.
func TestOperationsFollowTheAPI(t *testing.T) {
	t.Parallel()
	root := document(t, "admin.yaml")
	check, known := checker(t, root), operations(t, root)
	file := readRequests(t, "operations.http")
	used := map[string]bool{}
	for _, request := range file.Requests {
		base := reference.FindStringSubmatch(request.Target)
		require.NotNil(t, base, request.Name)
		require.True(t, strings.HasPrefix(file.Variables[base[1]], "http://127.0.0.1:808"), request.Name)
		path, _, _ := strings.Cut(strings.TrimPrefix(request.Target, base[0]), "?")
		op, found := known[request.Method+" "+path]
		require.True(t, found, "%s %s is not in admin.yaml", request.Method, path)
		used[op.name] = true
		require.Equal(t, "Bearer {{token}}", request.Header.Get("Authorization"), request.Name)
		requireBody(t, check, op, request)
		if strings.Contains(request.Body, `"reason"`) {
			require.Contains(t, request.Body, `"dry_run": true`, request.Name)
		}
	}
	for name := range known {
		require.True(t, used[name] || !strings.HasPrefix(name, "GET") || strings.Contains(name, "{"),
			"%s is not in operations.http", name)
	}
}
