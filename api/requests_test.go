package api_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/test/testkit"
)

func readRequests(t *testing.T, name string) testkit.HTTPFile {
	t.Helper()
	content, err := api.Files.ReadFile(name)
	require.NoError(t, err)
	file, err := testkit.ParseHTTPFile(string(content))
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

func requireBody(t *testing.T, check func(string, any) error, op operation, request testkit.HTTPFileRequest) {
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
