package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
)

// The file has every question that needs no id.
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

func TestExamplesOfOperationsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	root := document(t, "admin.yaml")
	check, shown := checker(t, root), 0
	for _, op := range operations(t, root) {
		for _, media := range op.body {
			described := media.(object)
			reference, named := described["schema"].(object)["$ref"].(string)
			if !named {
				continue
			}
			require.NotNil(t, described["example"], "%s has no example", op.name)
			require.NoError(t, check(reference, asJSON(t, described["example"])), op.name)
			shown++
		}
	}
	require.Greater(t, shown, 8)
}

func TestCodesOfOperationsAreDocumented(t *testing.T) {
	t.Parallel()
	data, err := api.Files.ReadFile("admin.yaml")
	require.NoError(t, err)
	for _, code := range declaredCodes(t, "../internal/ops/admin/problems.go") {
		require.True(t, strings.Contains(string(data), "`"+code+"`"), "%s is not among the problems' codes", code)
	}
}
