package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/test/testkit"
)

func TestExamplesFitTheirSchemas(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	check := checker(t, root)
	for _, op := range operations(t, root) {
		contents := map[string]object{"request": op.body}
		for status := range op.responses {
			response := deref(t, root, op.responses[status]).(object)
			contents[status], _ = response["content"].(object)
		}
		for status, content := range contents {
			for media := range content {
				described := content[media].(object)
				reference, _ := described["schema"].(object)["$ref"].(string)
				examples, _ := described["examples"].(object)
				require.NotEmpty(t, examples, "%s %s has no example", op.name, status)
				for name := range examples {
					value := deref(t, root, examples[name]).(object)["value"]
					if media == "text/html" {
						require.IsType(t, "", value)
						continue
					}
					require.NoError(t, check(reference, value), "%s %s %s", op.name, status, name)
				}
			}
		}
	}
}

func TestProblemExamplesAreTheCodesOfTheirResponse(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	statuses := testkit.ProblemStatuses(t, api.OpenAPI)
	shown := map[string]bool{"not_found": true, "method_not_allowed": true} // of every route; described once
	for _, op := range operations(t, root) {
		for status := range op.responses {
			response := deref(t, root, op.responses[status]).(object)
			content, _ := response["content"].(object)
			described, isProblem := content["application/problem+json"].(object)
			if !isProblem {
				require.True(t, status < "400" || strings.HasPrefix(op.name, "HEAD"), "%s %s is no problem", op.name, status)
				continue
			}
			for name, example := range described["examples"].(object) {
				value := deref(t, root, example).(object)["value"].(object)
				require.Equal(t, name, value["code"])
				require.Equal(t, status, fmt.Sprint(value["status"]), "%s %s", op.name, name)
				require.Equal(t, status, strconv.Itoa(statuses[name]), name)
				require.Equal(t, "https://example.com/twinbox/problems/"+name, value["type"])
				shown[name] = true
			}
		}
	}
	var enum []string
	for _, code := range at(t, root, "components", "schemas", "ProblemCode", "enum").([]any) {
		enum = append(enum, code.(string))
	}
	require.ElementsMatch(t, enum, slices.Collect(maps.Keys(statuses)))
	require.ElementsMatch(t, enum, slices.Collect(maps.Keys(shown)))
}

func TestEveryOperationCanBeRefused(t *testing.T) {
	t.Parallel()
	root := document(t, "openapi.yaml")
	for _, op := range operations(t, root) {
		want := []string{"429", "500", "503"}
		if op.body != nil {
			want = append(want, "400", "408", "413", "415", "422")
		}
		for _, status := range want {
			require.Contains(t, op.responses, status, op.name)
		}
		for status := range op.responses {
			response := deref(t, root, op.responses[status]).(object)
			headers, _ := response["headers"].(object)
			if strings.HasPrefix(op.name, "HEAD") {
				continue
			}
			require.Equal(t, status == "429" || status == "503", headers["Retry-After"] != nil, "%s %s", op.name, status)
		}
	}
}

var codeFiles = []string{
	"../internal/web/problem.go",
	"../internal/command/problem.go",
	"../internal/domain/input.go",
	"../internal/customer/problems.go",
}

// No answer of this API has these codes.
var elsewhere = []string{"host_not_allowed", "invalid_mail_id", "invalid_time"}

func TestDocumentedCodesAreTheOnesInTheCode(t *testing.T) {
	t.Parallel()
	var declared []string
	for _, file := range codeFiles {
		codes := declaredCodes(t, file)
		require.NotEmpty(t, codes, file)
		declared = append(declared, codes...)
	}
	declared = slices.DeleteFunc(declared, func(code string) bool { return slices.Contains(elsewhere, code) })
	slices.Sort(declared) // a rule and the race for it may share a code
	documented := slices.Sorted(maps.Keys(testkit.ProblemStatuses(t, api.OpenAPI)))
	require.Equal(t, documented, slices.Compact(declared))
}

func TestMistakesInTheDocumentAreFound(t *testing.T) {
	t.Parallel()
	openapi, asyncapi := standard(t, "openapi"), standard(t, "asyncapi")
	broken := document(t, "openapi.yaml")
	broken["paths"].(object)["/v1/signups"].(object)["post"].(object)["parameter"] = []any{}
	require.Error(t, openapi.Validate(broken), "a member that the format does not know")
	broken = document(t, "openapi.yaml")
	broken["components"].(object)["schemas"].(object)["SignupRequest"].(object)["minProperties"] = "1"
	require.Error(t, openapi.Validate(broken), "a schema that is none")
	require.Error(t, asyncapi.Validate(broken))
}

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
