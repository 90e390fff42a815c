package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// documentPaths are where an admin listener has the documents of its service's APIs, by the names that pages give them.
var documentPaths = map[string]string{"api": web.DocumentPath, "operations": adminapi.DocumentPath}

// api is an API of a service, as the document of the running service describes it.
type api struct {
	Service, Name  string
	Title, Version string
	Text           []block
	Base           string // its address
	Source         string // the document's
	Operations     []apiOperation
}

// apiOperation is one method of one path.
type apiOperation struct {
	ID, Method, Path, Summary string
	Deprecated                bool
	Token                     bool // is needed
	Text                      []block
	Parameters                []field
	Body                      []medium
	BodyRequired              bool
	Answers                   []apiAnswer
	Curl                      string
}

// medium is one form of a body.
type medium struct {
	Name    string
	Fields  []field
	Example string
}

// apiAnswer is what an operation answers with under a status.
type apiAnswer struct {
	Status  string // or "default"
	Text    []block
	Headers []field
	Media   []medium
	Codes   []problemCode
}

// problemCode is a code of a problem, with the example's words for it.
type problemCode struct{ Code, Detail string }

// apiPages show what the services document of themselves.
type apiPages struct{ *Console }

// read reads an API's document. Nil: the service has no such API.
func (p apiPages) read(ctx context.Context, s *client.Service, name string) (*api, error) {
	text, err := s.Document(ctx, documentPaths[name])
	if err != nil || text == nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: read document: %w", s.Name, err)
	}
	read := &api{
		Service: s.Name, Name: name, Title: d.Info.Title, Version: d.Info.Version, Text: blocks(d.Info.Description),
		Source: s.URL(documentPaths[name]), Base: s.URL(""),
	}
	if name == "api" { // the document knows better than the admin listener, and who started the service best
		if len(d.Servers) > 0 {
			read.Base = d.Servers[0].URL
		}
		read.Base = cmp.Or(p.cfg.APIs[s.Name], read.Base)
	}
	for _, path := range d.Paths {
		for _, method := range path.Value {
			if !slices.Contains(httpMethods, method.Name) {
				continue
			}
			o, err := d.operation(read.Base, path.Name, method.Name, path.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %s %s: %w", s.Name, method.Name, path.Name, err)
			}
			read.Operations = append(read.Operations, o)
		}
	}
	return read, nil
}

var httpMethods = []string{"get", "head", "post", "put", "patch", "delete", "options"}

// operation reads a method of a path, whose own members hold what its methods share.
func (d *document) operation(base, path, method string, item members[json.RawMessage]) (o apiOperation, err error) {
	var said described
	var shared []json.RawMessage
	if err := json.Unmarshal(item.get(method), &said); err != nil {
		return o, fmt.Errorf("read document: %w", err)
	}
	if own := item.get("parameters"); own != nil {
		if err := json.Unmarshal(own, &shared); err != nil {
			return o, fmt.Errorf("read document: %w", err)
		}
	}
	security := d.Security
	if said.Security != nil {
		security = *said.Security
	}
	method = strings.ToUpper(method)
	o = apiOperation{
		ID: cmp.Or(said.OperationID, method+" "+path), Method: method, Path: path, Summary: said.Summary,
		Deprecated: said.Deprecated, Text: blocks(said.Description),
		Token: slices.ContainsFunc(security, func(one map[string][]string) bool { return len(one) > 0 }),
	}
	call := curl{method: method, url: base + path, token: o.Token}
	if err := d.parameters(&o, &call, slices.Concat(shared, said.Parameters)); err != nil {
		return o, err
	}
	body, _, err := find[content](d, said.RequestBody)
	if err != nil {
		return o, err
	}
	if o.BodyRequired = body.Required; len(body.Content) > 0 {
		if o.Body, err = d.media(body); err != nil {
			return o, err
		}
		call.media, call.body = o.Body[0].Name, o.Body[0].Example
	}
	for _, response := range said.Responses {
		answer, err := d.answer(response.Name, response.Value)
		if err != nil {
			return o, err
		}
		o.Answers = append(o.Answers, answer)
	}
	o.Curl = call.String()
	return o, nil
}

func (d *document) parameters(o *apiOperation, call *curl, all []json.RawMessage) error {
	query := url.Values{}
	for _, text := range all {
		p, _, err := find[parameter](d, text)
		if err != nil {
			return err
		}
		s, _, err := find[schema](d, p.Schema)
		if err != nil {
			return err
		}
		o.Parameters = append(o.Parameters, field{
			Name: p.Name, In: p.In, Rules: s.rules(d), Required: p.Required, Text: blocks(cmp.Or(p.Description, s.Description)),
		})
		example := d.exampleOf(p, s)
		switch {
		case p.In == "path":
			call.url = strings.ReplaceAll(call.url, "{"+p.Name+"}", url.PathEscape(example))
		case !p.Required:
		case p.In == "query":
			query.Set(p.Name, example)
		case p.In == "header":
			call.headers = append(call.headers, p.Name+": "+example)
		}
	}
	if len(query) > 0 {
		call.url += "?" + query.Encode()
	}
	return nil
}

// media reads the forms of a body. Its first example is shown.
func (d *document) media(body content) (all []medium, err error) {
	for _, form := range body.Content {
		m := medium{Name: form.Name}
		if m.Fields, err = d.fields(form.Value.Schema, ""); err != nil {
			return nil, err
		}
		examples := []json.RawMessage{form.Value.Example}
		for _, named := range form.Value.Examples {
			example, _, err := find[struct{ Value json.RawMessage }](d, named.Value)
			if err != nil {
				return nil, err
			}
			examples = append(examples, example.Value)
		}
		m.Example = d.example(examples...)
		all = append(all, m)
	}
	return all, nil
}

func (d *document) answer(status string, text json.RawMessage) (a apiAnswer, err error) {
	said, _, err := find[content](d, text)
	if err != nil {
		return a, err
	}
	a = apiAnswer{Status: status, Text: blocks(said.Description)}
	for _, h := range said.Headers {
		header, _, err := find[parameter](d, h.Value)
		if err != nil {
			return a, err
		}
		a.Headers = append(a.Headers, field{Name: h.Name, Text: blocks(header.Description), Required: header.Required})
	}
	if problem := said.Content.get(problemMedia); problem.Examples != nil {
		for _, named := range problem.Examples {
			example, _, err := find[struct {
				Value struct{ Code, Detail string }
			}](d, named.Value)
			if err != nil {
				return a, err
			}
			a.Codes = append(a.Codes, problemCode{cmp.Or(example.Value.Code, named.Name), example.Value.Detail})
		}
		return a, nil
	}
	a.Media, err = d.media(said)
	return a, err
}

const problemMedia = "application/problem+json"

// curl is a call of an operation as a line for a shell.
type curl struct {
	method, url string
	headers     []string
	token       bool
	media, body string
}

// String is the line. The token stays a variable of the shell.
func (c curl) String() string {
	line := "curl -i" // with the status
	switch c.method {
	case http.MethodGet:
	case http.MethodHead:
		line = "curl -I"
	default:
		line += " -X " + c.method
	}
	parts := []string{line, quoted(c.url)}
	if c.token {
		parts = append(parts, `-H "Authorization: Bearer $ADMIN_TOKEN"`)
	}
	for _, header := range c.headers {
		parts = append(parts, "-H "+quoted(header))
	}
	if c.media != "" {
		parts = append(parts, "-H "+quoted("Content-Type: "+c.media), "-d "+quoted(c.body))
	}
	return strings.Join(parts, " \\\n  ")
}

// quoted is a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// showAll lists the APIs of all services. Their documents need no token, neither there nor here.
func (p apiPages) showAll(w http.ResponseWriter, r *http.Request) {
	answers := make([]answer[[]*api], len(p.cfg.Services))
	var all sync.WaitGroup
	for i, s := range p.cfg.Services {
		all.Go(func() {
			answers[i].Service = s.Name
			for _, name := range []string{"api", "operations"} {
				found, err := p.read(r.Context(), s, name)
				if err != nil {
					answers[i].Err = err
					return
				}
				if found != nil {
					answers[i].Value = append(answers[i].Value, found)
				}
			}
		})
	}
	all.Wait()
	p.page(w, r, http.StatusOK, "apis", "APIs", answers)
}

// show shows the operations of an API.
func (p apiPages) show(w http.ResponseWriter, r *http.Request) {
	s, name := p.service(r.PathValue("service")), r.PathValue("api")
	if s == nil || documentPaths[name] == "" {
		p.fail(w, r, http.StatusNotFound, errors.New("there is no such API"))
		return
	}
	found, err := p.read(r.Context(), s, name)
	switch {
	case err != nil:
		p.fail(w, r, statusOf(err), err)
	case found == nil:
		p.fail(w, r, http.StatusNotFound, errors.New(s.Name+" has no such API"))
	default:
		p.page(w, r, http.StatusOK, "api", found.Title+" of "+s.Name, found)
	}
}
