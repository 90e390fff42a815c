package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/web"
)

// documentPaths are where an admin listener has the documents of its service's APIs, by the names that pages give them.
var documentPaths = map[string]string{"api": web.DocumentPath, "operations": adminapi.DocumentPath}

// node is an object of an OpenAPI document. The templates show what stands in it.
type node = map[string]any

// child is what stands in a value under the names, as an object: nil where there is none. list is it as a list.
func child(of any, names ...string) node {
	found, _ := of.(node)
	for _, name := range names {
		found, _ = found[name].(node)
	}
	return found
}

func list(of node, name string) []any {
	found, _ := of[name].([]any)
	return found
}

// api is an API of a service, as the document of the running service describes it.
type api struct {
	Service, Name string
	Info          node
	Base          string // its address
	Source        string // the document's
	Operations    []operation
}

// operation is one method of one path.
type operation struct {
	ID, Method, Path string
	Said             node // what the document says of it
	Parameters       []any
	Token            bool // is needed
	Curl             string
}

var httpMethods = []string{"get", "head", "post", "put", "patch", "delete", "options"}

// apiPages show what the services document of themselves.
type apiPages struct{ *Console }

// readAPI reads an API's document. Nil: the service has no such API.
func (p apiPages) readAPI(ctx context.Context, s *client.Service, name string) (*api, error) {
	text, err := s.Document(ctx, documentPaths[name])
	if err != nil || text == nil {
		return nil, err
	}
	var read node
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // they are shown as they are written
	if err := decoder.Decode(&read); err != nil {
		return nil, fmt.Errorf("%s: read document: %w", s.Name, err)
	}
	d, err := resolve(read)
	if err != nil {
		return nil, fmt.Errorf("%s: read document: %w", s.Name, err)
	}
	found := &api{
		Service: s.Name, Name: name, Info: child(d, "info"), Source: s.URL(documentPaths[name]), Base: s.URL(""),
	}
	if name == "api" { // the document knows better than the admin listener, and who started the service best
		if servers := list(d, "servers"); len(servers) > 0 {
			found.Base = fmt.Sprint(child(servers[0])["url"])
		}
		found.Base = cmp.Or(p.cfg.APIs[s.Name], found.Base)
	}
	paths := child(d, "paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := child(paths, path)
		for _, method := range httpMethods {
			if said := child(item, method); said != nil {
				found.Operations = append(found.Operations, operationOf(d, found.Base, method, path, item, said))
			}
		}
	}
	return found, nil
}

func operationOf(d node, base, method, path string, item, said node) operation {
	o := operation{
		Method: strings.ToUpper(method), Path: path, Said: said,
		Parameters: slices.Concat(list(item, "parameters"), list(said, "parameters")),
	}
	o.ID, _ = said["operationId"].(string)
	security := list(d, "security")
	if said["security"] != nil {
		security = list(said, "security")
	}
	o.Token = slices.ContainsFunc(security, func(one any) bool { return len(child(one)) > 0 })
	o.Curl = o.curl(base)
	return o
}

// maxValues is how many values a document may have with what its references lead to in their places. Ours have some ten
// thousand; a few lines whose references double what they lead to would fill the memory.
const maxValues = 1_000_000

var errTooLarge = errors.New("its references make too much of it")

// resolve puts what references lead to in their places. One that leads to what it is part of ends there.
func resolve(document node) (node, error) {
	left := maxValues // that it may still make
	var whole func(part any, within []string) any
	whole = func(part any, within []string) any {
		if left--; left <= 0 {
			return nil
		}
		switch part := part.(type) {
		case []any:
			all := make([]any, len(part))
			for i, item := range part {
				all[i] = whole(item, within)
			}
			return all
		case node:
			if to, is := part["$ref"].(string); is {
				if slices.Contains(within, to) {
					return node{}
				}
				path := strings.Split(strings.TrimPrefix(to, "#/"), "/")
				last := len(path) - 1
				return whole(child(document, path[:last]...)[path[last]], append(slices.Clone(within), to))
			}
			all := node{}
			for name, item := range part {
				all[name] = whole(item, within)
			}
			return all
		}
		return part
	}
	resolved := child(whole(document, nil))
	if left <= 0 {
		return nil, errTooLarge
	}
	return resolved, nil
}

// exampleOf is the first example that something in a document has, or its schema has; nil: there is none.
func exampleOf(of node) any {
	if of["example"] != nil {
		return of["example"]
	}
	for _, example := range list(of, "examples") { // of a schema
		return example
	}
	named := child(of, "examples")
	for _, name := range slices.Sorted(maps.Keys(named)) {
		return child(named, name)["value"]
	}
	if s := child(of, "schema"); s != nil {
		return exampleOf(s)
	}
	return nil
}

// exampleText is an example with a member a line; "" where there is none.
func exampleText(of node) string {
	example := exampleOf(of)
	if example == nil {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the template escapes
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(example) // it was JSON
	return strings.TrimSpace(text.String())
}

// field is a member of a body, as a page shows it.
type field struct {
	Name     string
	Required bool
	Schema   node
}

// fieldsOf are the members of a schema, with those of inner objects as outer.inner and of lists as list[].inner.
func fieldsOf(of any, prefix string) (all []field) {
	schema := child(of)
	for _, part := range slices.Concat(list(schema, "allOf"), list(schema, "oneOf"), list(schema, "anyOf")) {
		all = append(all, fieldsOf(part, prefix)...)
	}
	properties := child(schema, "properties")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		member := child(properties, name)
		all = append(all, field{prefix + name, slices.Contains(list(schema, "required"), any(name)), member})
		all = append(all, fieldsOf(member, prefix+name+".")...)
	}
	if items := schema["items"]; items != nil {
		all = append(all, fieldsOf(items, strings.TrimSuffix(prefix, ".")+"[].")...)
	}
	return all
}

// rules says in a few words what a value must be, in the words of JSON Schema.
func rules(of any) string {
	schema, said := child(of), []string{}
	for _, word := range []string{
		"type", "format", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
		"default",
	} {
		switch value := schema[word]; {
		case value == nil:
		case word == "type":
			said = append(said, strings.Trim(fmt.Sprint(value), "[]"))
		default:
			said = append(said, fmt.Sprint(word, " ", value))
		}
	}
	if items := schema["items"]; items != nil {
		said = append(said, "of "+rules(items))
	}
	return strings.Join(said, ", ")
}

// curl is a call of the operation as a line for a shell. The token stays a variable of the shell.
func (o *operation) curl(base string) string {
	line, address, query := "curl -i -X "+o.Method, base+o.Path, url.Values{} // -i: with the status
	if o.Method == http.MethodHead {
		line = "curl -I"
	}
	var options []string
	if o.Token {
		options = append(options, `-H "Authorization: Bearer $ADMIN_TOKEN"`)
	}
	for _, parameter := range o.Parameters {
		p := child(parameter)
		name := fmt.Sprint(p["name"])
		example := fmt.Sprint(cmp.Or(exampleOf(p), any(strings.ToUpper(name))))
		switch {
		case p["in"] == "path":
			address = strings.ReplaceAll(address, "{"+name+"}", url.PathEscape(example))
		case p["required"] != true:
		case p["in"] == "query":
			query.Set(name, example)
		case p["in"] == "header":
			options = append(options, "-H "+quoted(name+": "+example))
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	content := child(o.Said, "requestBody", "content")
	for media := range content { // there is one
		options = append(options, "-H "+quoted("Content-Type: "+media), "-d "+quoted(exampleText(child(content, media))))
	}
	return strings.Join(append([]string{line, quoted(address)}, options...), " \\\n  ")
}

// quoted is a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

var (
	codeMark  = regexp.MustCompile("`([^`]+)`")
	boldMark  = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	entryMark = regexp.MustCompile(`(?m)\n\s*- `)
)

// prose is a description as HTML: of Markdown what they are written in, which is paragraphs, lists, code and bold.
func prose(text any) template.HTML {
	said, _ := text.(string)
	said = template.HTMLEscapeString(strings.TrimSpace(said))
	said = codeMark.ReplaceAllString(said, "<code>$1</code>")
	said = boldMark.ReplaceAllString(said, "<strong>$1</strong>")
	said = entryMark.ReplaceAllString(said, `</p><p class="entry">`)
	if said != "" {
		said = "<p>" + strings.ReplaceAll(said, "\n\n", "</p><p>") + "</p>"
	}
	return template.HTML(said) //nolint:gosec // escaped above
}

// showAll lists the APIs of all services. Their documents need no token, neither there nor here.
func (p apiPages) showAll(r *http.Request) (content, error) {
	answers := client.Ask(p.cfg.Services, func(s *client.Service) (found []*api, err error) {
		for _, name := range []string{"api", "operations"} {
			one, notRead := p.readAPI(r.Context(), s, name)
			if err = errors.Join(err, notRead); one != nil {
				found = append(found, one)
			}
		}
		return found, err
	})
	return content{"apis", "APIs", answers}, nil
}

// show shows the operations of an API.
func (p apiPages) show(r *http.Request) (content, error) {
	s, err := p.service(r)
	name := r.PathValue("api")
	if err != nil || documentPaths[name] == "" {
		return content{}, missing("there is no such API")
	}
	found, err := p.readAPI(r.Context(), s, name)
	if err == nil && found == nil {
		err = missing(s.Name + " has no such API")
	}
	if err != nil {
		return content{}, err
	}
	return content{"api", fmt.Sprint(found.Info["title"], " of ", s.Name), found}, nil
}
