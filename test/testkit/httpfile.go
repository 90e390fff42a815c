package testkit

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// HTTPFile is what an .http file holds.
type HTTPFile struct {
	Variables map[string]string // the lines "@name = value" above the first request
	Requests  []HTTPFileRequest
}

// HTTPFileRequest is one request as it is written, references to variables included.
type HTTPFileRequest struct {
	Name, Method, Target string
	Header               http.Header
	Body                 string
}

var (
	variableLine = regexp.MustCompile(`^@([A-Za-z]\w*) = (\S.*)$`)
	nameLine     = regexp.MustCompile(`^# @name ([a-z]\w*)$`)
	requestLine  = regexp.MustCompile(`^(GET|HEAD|POST|PUT|PATCH|DELETE) ((?:https?://|\{\{)\S+)$`)
	headerLine   = regexp.MustCompile(`^([A-Za-z][A-Za-z-]*): (\S.*)$`)
	reference    = regexp.MustCompile(`\{\{([^}]*)\}\}`)
	// notJSON begins the lines that some tool takes for a script, a file, an assertion, a comment or a variable.
	notJSON = regexp.MustCompile(`^(<|>|#|//|\?\?|@|\{%|\{\{|GET |POST |HTTP)`)
)

// ParseHTTPFile reads a file in the subset of the format that VS Code's REST Client, the HTTP Client of JetBrains and
// httpyac all understand. Everything else is an error that names the line. Scripts that take a value out of an answer
// are not in the subset: each tool has its own syntax for them. Every variable is defined above the first request, and
// every request has its own name.
func ParseHTTPFile(text string) (HTTPFile, error) {
	p := parser{file: HTTPFile{Variables: map[string]string{}}, read: (*parser).preamble}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := p.line(line); err != nil {
			return HTTPFile{}, fmt.Errorf("line %d: %w: %q", i+1, err, line)
		}
	}
	if err := p.end(); err != nil {
		return HTTPFile{}, fmt.Errorf("end of file: %w", err)
	}
	if len(p.file.Requests) == 0 {
		return HTTPFile{}, errors.New("no request")
	}
	return p.file, nil
}

// Fill puts values in the place of references. What values lacks it takes from the file's own variables.
func (f HTTPFile) Fill(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "{}")
		if value, given := values[name]; given {
			return value
		}
		return f.Variables[name]
	})
}

// parser reads line by line; read is what the next line is expected to be.
type parser struct {
	file    HTTPFile
	request *HTTPFileRequest
	read    func(p *parser, line string) error
}

func (p *parser) line(line string) error {
	if strings.TrimRight(line, " \t\r") != line {
		return errors.New("white space at the end")
	}
	for _, found := range reference.FindAllStringSubmatch(line, -1) {
		if _, known := p.file.Variables[found[1]]; !known {
			return fmt.Errorf("{{%s}} is not a variable from above the first request", found[1])
		}
	}
	if strings.HasPrefix(line, "###") {
		if err := p.end(); err != nil {
			return err
		}
		p.request, p.read = &HTTPFileRequest{Header: http.Header{}}, (*parser).head
		return nil
	}
	return p.read(p, line)
}

// preamble is what stands above the first request: comments and variables.
func (p *parser) preamble(line string) error {
	variable := variableLine.FindStringSubmatch(line)
	switch {
	case line == "" || strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "# @"):
		return nil
	case variable == nil:
		return errors.New(`neither a comment nor "@name = value"`)
	}
	p.file.Variables[variable[1]] = variable[2]
	return nil
}

// head is what stands between ### and the request line: comments and the name.
func (p *parser) head(line string) error {
	if name := nameLine.FindStringSubmatch(line); name != nil {
		if p.request.Name != "" {
			return errors.New("a second name")
		}
		p.request.Name = name[1]
		return nil
	}
	if strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "# @") {
		return nil
	}
	request := requestLine.FindStringSubmatch(line)
	if request == nil {
		return errors.New(`none of "# comment", "# @name name", "METHOD target"`)
	}
	p.request.Method, p.request.Target, p.read = request[1], request[2], (*parser).header
	return nil
}

func (p *parser) header(line string) error {
	header := headerLine.FindStringSubmatch(line)
	switch {
	case line == "":
		p.read = (*parser).body
		return nil
	case header == nil:
		return errors.New(`not "Header: value"`)
	}
	p.request.Header.Add(header[1], header[2])
	return nil
}

func (p *parser) body(line string) error {
	if notJSON.MatchString(line) {
		return errors.New("not a line of JSON to every editor")
	}
	p.request.Body += line + "\n"
	return nil
}

// end closes the request that was being read, if any.
func (p *parser) end() error {
	if p.request == nil {
		return nil
	}
	request := *p.request
	request.Body = strings.TrimSpace(request.Body)
	switch {
	case request.Method == "":
		return errors.New("the section above has no request line")
	case request.Name == "":
		return fmt.Errorf("%s %s has no name", request.Method, request.Target)
	case request.Body != "" && request.Header.Get("Content-Type") == "":
		return fmt.Errorf("%s has a body and no Content-Type", request.Name)
	}
	for _, other := range p.file.Requests {
		if other.Name == request.Name {
			return fmt.Errorf("%s is there twice", request.Name)
		}
	}
	p.file.Requests = append(p.file.Requests, request)
	return nil
}
