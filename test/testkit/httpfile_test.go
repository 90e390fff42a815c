package testkit_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

const good = `# About the file.

@base = http://127.0.0.1:8080
@id = copy-it-here

### Ask.
# @name ask
GET {{base}}/things/{{id}}

### Tell. A comment may follow.
# More about it.
# @name tell
POST {{base}}/things
Content-Type: application/json
Authorization: Bearer {{id}}

{"a": 1,
"b": "{{id}}"}
`

func TestParse(t *testing.T) {
	t.Parallel()
	file, err := testkit.ParseHTTPFile(good)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"base": "http://127.0.0.1:8080", "id": "copy-it-here"}, file.Variables)
	require.Equal(t, []testkit.HTTPFileRequest{
		{Name: "ask", Method: "GET", Target: "{{base}}/things/{{id}}", Header: http.Header{}},
		{
			Name: "tell", Method: "POST", Target: "{{base}}/things", Body: "{\"a\": 1,\n\"b\": \"{{id}}\"}",
			Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer {{id}}"}},
		},
	}, file.Requests)
	require.Equal(t, "http://127.0.0.1:8080/things/7", file.Fill(file.Requests[0].Target, map[string]string{"id": "7"}))
	require.Equal(t, "copy-it-here", file.Fill("{{id}}", nil))
}

// Each of these works in one editor and not in another.
func TestWhatOnlyOneEditorKnowsIsRefused(t *testing.T) {
	t.Parallel()
	const (
		top  = "@base = http://127.0.0.1:8080\n\n"
		post = top + "### Tell\n# @name tell\nPOST {{base}}/\nContent-Type: application/json\n\n{\"a\": 1}\n"
	)
	for name, test := range map[string]struct{ text, want string }{
		"REST Client's capture":  {top + "### A\n# @name a\nGET {{base}}/{{b.response.body.id}}\n", "{{b.response"},
		"a generated value":      {top + "### A\n# @name a\nGET {{base}}/{{$guid}}\n", "section 1: {{$guid}}"},
		"a comment of slashes":   {top + "### A\n// @name a\nGET {{base}}/\n", "section 1: not"},
		"a script before":        {top + "### A\n# @name a\n< {% x %}\nGET {{base}}/\n", "section 1: not"},
		"an answer into a file":  {post + ">> answer.json\n", "is not JSON"},
		"a second request":       {post + "GET {{base}}/\n", "is not JSON"},
		"a version of HTTP":      {top + "### A\n# @name a\nGET {{base}}/ HTTP/1.1\n", "section 1: not"},
		"a relative target":      {top + "### A\n# @name a\nGET /v1/things\n", "section 1: not"},
		"no name":                {top + "### A\nGET {{base}}/\n", "section 1: not"},
		"one name twice":         {post + post[len(top):], "section 2: tell is there twice"},
		"a body of no type":      {top + "### A\n# @name a\nPOST {{base}}/\n\n{}\n", "a has a body and no Content-Type"},
		"white space at the end": {"@base = x \n", "white space"},
		"no request":             {top, "no request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := testkit.ParseHTTPFile(test.text)
			require.ErrorContains(t, err, test.want)
		})
	}
}
