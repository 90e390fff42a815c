package console

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"

	contracts "example.com/twinbox/api"
)

// served makes the stub show the documents of both of a service's APIs.
func (b *bundle) served(t *testing.T) *bundle {
	t.Helper()
	operations, err := contracts.Files.ReadFile("admin.gen.json")
	require.NoError(t, err)
	b.stub.set("/openapi.json", string(contracts.OpenAPI))
	b.stub.set("/admin/v1/openapi.json", string(operations))
	return b
}

type object = map[string]any

// follow is what stands in a document, or where its reference leads.
func followRef(t *testing.T, root object, value any) object {
	t.Helper()
	found, is := value.(object)
	for is && found["$ref"] != nil {
		var at any = root
		for name := range strings.SplitSeq(strings.TrimPrefix(found["$ref"].(string), "#/"), "/") {
			at = at.(object)[name]
		}
		found, is = at.(object)
	}
	return found
}

// Each operation of each document is on its page with all that is said of it, by another reader of the document: of
// the YAML that people write, not of what the services show.
func TestEachOperationIsOnItsPage(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"../../../api/openapi.yaml": "/apis/customer/api", "../../../api/admin.yaml": "/apis/customer/operations",
	}
	examples, err := filepath.Glob("../../../examples/*/openapi.yaml")
	require.NoError(t, err)
	for _, file := range examples {
		pages[file] = "/apis/customer/api"
	}
	for file, path := range pages {
		b := setup(t, nil).served(t)
		if path == "/apis/customer/api" {
			shown, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".gen.json")
			require.NoError(t, err)
			b.stub.set("/openapi.json", string(shown))
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var root object
		require.NoError(t, yaml.Unmarshal(text, &root))
		status, page := b.get(t, path)
		require.Equal(t, http.StatusOK, status)
		count := 0
		for route, item := range root["paths"].(object) {
			for method, node := range item.(object) {
				if method == "parameters" {
					continue
				}
				count++
				said := node.(object)
				what := method + " " + route
				id := said["operationId"].(string)
				_, sheet, found := strings.Cut(page, `<article class="sheet" id="`+id+`"`)
				require.True(t, found, what)
				sheet, _, _ = strings.Cut(sheet, "</article>")
				sheet = html.UnescapeString(sheet)
				require.Contains(t, page, `href="#`+id+`"`, "%s is in the index", what)
				require.Contains(t, sheet, `data-method="`+strings.ToUpper(method)+`"`, what)
				require.Contains(t, sheet, route, what)
				require.Contains(t, sheet, said["summary"], what)
				shared, _ := item.(object)["parameters"].([]any)
				own, _ := said["parameters"].([]any)
				for _, p := range append(append([]any{}, shared...), own...) {
					parameter := followRef(t, root, p)
					require.Contains(t, sheet, `<code>`+parameter["name"].(string)+`</code>`, what)
				}
				body := followRef(t, root, said["requestBody"])
				for media, form := range asObject(body["content"]) {
					require.Contains(t, sheet, media, what)
					for name := range asObject(followRef(t, root, form.(object)["schema"])["properties"]) {
						require.Contains(t, sheet, `<code>`+name+`</code>`, what)
					}
				}
				for status, answer := range said["responses"].(object) {
					require.Contains(t, sheet, ">"+status+"</dt>", what)
					content := asObject(followRef(t, root, answer)["content"])
					for code := range asObject(asObject(content["application/problem+json"])["examples"]) {
						require.Contains(t, sheet, `<code>`+code+`</code>`, "%s %s", what, status)
					}
				}
			}
		}
		require.Positive(t, count)
		require.Equal(t, count, strings.Count(page, `<article class="sheet"`), "and no other one")
	}
}

func asObject(value any) object {
	found, _ := value.(object)
	return found
}

// A shell makes of each line what the document says: the method, the address, the token as it is in the environment,
// the example as the body.
func TestCurlLinesAreReady(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.APIs = map[string]string{"customer": "http://127.0.0.1:9080"} }).served(t)
	for path, base := range map[string]string{
		"/apis/customer/api":        "http://127.0.0.1:9080/v1/",
		"/apis/customer/operations": b.console.cfg.Services[0].URL("/admin/v1/"),
	} {
		_, page := b.get(t, path)
		lines := regexp.MustCompile(`(?s)<pre class="call">(.*?)</pre>`).FindAllStringSubmatch(page, -1)
		require.NotEmpty(t, lines)
		for _, line := range lines {
			shell := exec.CommandContext(t.Context(), "sh", "-c",
				`curl() { printf '%s\0' "$@"; }; `+html.UnescapeString(line[1]))
			shell.Env = []string{"ADMIN_TOKEN=it's a secret"}
			out, err := shell.Output()
			require.NoError(t, err, line[1])
			words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			require.Equal(t, path == "/apis/customer/operations",
				slices.Contains(words, "Authorization: Bearer it's a secret"), line[1])
			url, body := "", ""
			for i, word := range words {
				if strings.HasPrefix(word, "http://") {
					url = word
				}
				if word == "-d" {
					body = words[i+1]
				}
			}
			require.True(t, strings.HasPrefix(url, base), url)
			require.NotContains(t, url, "{", "every part of the path has an example")
			require.Equal(t, slices.Contains(words, "Content-Type: application/json"), body != "", line[1])
			require.True(t, body == "" || json.Valid([]byte(body)), body)
		}
	}
}

// The documents need no token, and so do their pages.
func TestTheAPIsNeedNoSession(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.ReadOnly = true }).served(t)
	_, page := b.get(t, "/apis")
	require.Contains(t, page, `href="/apis/customer/api"`)
	require.Contains(t, page, `href="/apis/customer/operations"`)
	require.NotContains(t, page, "<script>")
	for _, path := range []string{"/apis/customer/api", "/apis/customer/operations"} {
		status, page := b.get(t, path)
		require.Equal(t, http.StatusOK, status)
		require.NotRegexp(t, `style=|<script>|javascript:|src="http`, page, "what the content policy forbids")
	}
	require.Empty(t, b.stub.operations())
	b.stub.mu.Lock()
	defer b.stub.mu.Unlock()
	require.Zero(t, b.stub.tokens)
}

// What a service does not say, or says wrongly, is told in its place.
func TestDocumentsThatAreNone(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, page := b.get(t, "/apis")
	require.NotContains(t, page, "/apis/customer/")
	for _, path := range []string{"/apis/customer/api", "/apis/customer/other", "/apis/none/api"} {
		status, _ := b.get(t, path)
		require.Equal(t, http.StatusNotFound, status, path)
	}
	b.stub.set("/openapi.json", `<html>`)
	_, page = b.get(t, "/apis")
	require.Contains(t, page, "read document")
	status, page := b.get(t, "/apis/customer/api")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, page, "read document")
	b.stub.set("/openapi.json", `{"servers":[1],"paths":{"/x":{"get":{
		"security":[1],"parameters":[{"$ref":"#/a/b"},{"examples":[]}],
		"requestBody":{"$ref":"#/components/x/y"},"responses":{"":{"content":{"a":1}},"2":1}}}}}`)
	b.get(t, "/apis/customer/api")
	status, _ = b.get(t, "/apis")
	require.Equal(t, http.StatusOK, status, "the console goes on")
}

// A document of a few lines, each of which holds the next one twice, is not written out: it would fill the memory.
func TestReferencesThatDouble(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	var lines []string
	for i := range 60 {
		lines = append(lines, fmt.Sprintf(`"%d":[{"$ref":"#/a/%d"},{"$ref":"#/a/%[2]d"}]`, i, i+1))
	}
	b.stub.set("/openapi.json", `{"paths":{},"a":{`+strings.Join(lines, ",")+`}}`)
	status, page := b.get(t, "/apis/customer/api")
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, page, errTooLarge.Error())
}

// A document is shown as text, with any content; a schema that holds itself ends.
func TestAHostileDocumentIsText(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	const bad = `<script>alert(1)</script>`
	b.stub.set("/openapi.json", strings.ReplaceAll(`{
		"info":{"title":"BAD","version":"BAD","description":"BAD [x](https://example.com/BAD)"},
		"servers":[{"url":"javascript:alert(1)'; rm -rf /; '"}],
		"paths":{"/BAD/{id}":{"get":{"operationId":"BAD","summary":"BAD",
		"parameters":[{"name":"id","in":"path","example":"BAD"}],
		"requestBody":{"content":{"BAD":{"schema":{"$ref":"#/components/schemas/Tree"},"example":"it's"}}},
		"responses":{"200":{"description":"BAD"}}}}},
		"components":{"schemas":{"Tree":{"type":"object",
			"properties":{"BAD":{"type":"array","items":{"$ref":"#/components/schemas/Tree"}}}}}}}`, "BAD", bad))
	for _, path := range []string{"/apis", "/apis/customer/api"} {
		status, page := b.get(t, path)
		require.Equal(t, http.StatusOK, status, page)
		require.NotContains(t, page, bad)
		require.NotRegexp(t, `href="javascript:`, page)
	}
}

func TestProse(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, `<p>Send <code>a &lt;b&gt;</code>, <strong>now</strong>.</p><p class="entry">one,
  and more</p><p class="entry">two</p><p>The end.</p>`,
		prose("Send `a <b>`, **now**.\n\n- one,\n  and more\n- two\n\nThe end.\n"))
	require.Empty(t, prose(nil))
}

// Members of members of lists, a schema that holds itself, one that allows everything: what documents nest.
func TestFieldsOfSchemas(t *testing.T) {
	t.Parallel()
	var d node
	require.NoError(t, json.Unmarshal([]byte(`{"components":{"schemas":{
		"Name":{"type":"string","minLength":1,"maxLength":9},
		"Tree":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Tree"}}}}},
		"schema":{"type":"object","required":["list"],"properties":{
		"list":{"type":"array","minItems":1,
			"items":{"type":"object","properties":{"name":{"$ref":"#/components/schemas/Name"}}}},
		"at":{"type":["string","null"],"format":"date-time"},"any":true,"tree":{"$ref":"#/components/schemas/Tree"},
		"both":{"allOf":[{"properties":{"n":{"type":"integer","minimum":0,"default":5}}}]},
		"kinds":{"type":"array","items":{"enum":["a","b"]}}}}}`), &d))
	d, err := resolve(d)
	require.NoError(t, err)
	said, required := map[string]string{}, []string{}
	for _, f := range fieldsOf(child(d, "schema"), "") {
		said[f.Name] = rules(f.Schema)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	require.Equal(t, map[string]string{
		"list": "array, minItems 1, of object", "list[].name": "string, minLength 1, maxLength 9",
		"at": "string null, format date-time", "any": "", "both": "", "both.n": "integer, minimum 0, default 5",
		"kinds": "array, of enum [a b]", "tree": "object", "tree.next": "",
	}, said)
	require.Equal(t, []string{"list"}, required)
}
