package testkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type HTTPFile struct {
	Variables map[string]string // the lines "@name = value" above the first request
	Requests  []HTTPFileRequest
}

// HTTPFileRequest is a request as written, with references to variables.
type HTTPFileRequest struct {
	Name, Method, Target string
	Header               http.Header
	Body                 string
}

// Headers returns names and values, which alternate.
func (r HTTPFileRequest) Headers() (list []string) {
	for name := range r.Header {
		list = append(list, name, r.Header.Get(name))
	}
	return list
}

var (
	preambleLine = regexp.MustCompile(`^(?:|# [^@].*|@([A-Za-z]\w*) = (\S.*))$`)
	section      = regexp.MustCompile(`^.*\n(?:# [^@\n].*\n)*# @name ([a-z]\w*)\n(?:# [^@\n].*\n)*` +
		`(GET|HEAD|POST|PUT|PATCH|DELETE) ((?:https?://|\{\{)\S+)\n((?:[A-Za-z][A-Za-z-]*: \S.*\n)*)(?:\n((?s:.*)))?$`)
	reference  = regexp.MustCompile(`\{\{([^}\n]*)\}\}`)
	spaceAtEnd = regexp.MustCompile(`(?m)[ \t\r]$`)
)

// ParseHTTPFile reads the subset of the format that VS Code's REST Client, the HTTP Client of JetBrains and httpyac all
// understand, without scripts. Errors name the section. Variables are defined above the first request, and request
// names are unique.
func ParseHTTPFile(text string) (HTTPFile, error) {
	file := HTTPFile{Variables: map[string]string{}}
	if spaceAtEnd.MatchString(text) {
		return file, errors.New("white space at the end of a line")
	}
	sections := strings.Split("\n"+strings.TrimSuffix(text, "\n"), "\n###")
	for line := range strings.SplitSeq(sections[0], "\n") {
		parts := preambleLine.FindStringSubmatch(line)
		switch {
		case parts == nil:
			return file, fmt.Errorf(`neither a comment nor "@name = value": %q`, line)
		case parts[1] != "":
			file.Variables[parts[1]] = parts[2]
		}
	}
	if len(sections) == 1 {
		return file, errors.New("no request")
	}
	for i, text := range sections[1:] {
		if err := file.add(text + "\n"); err != nil {
			return file, fmt.Errorf("section %d: %w", i+1, err)
		}
	}
	return file, nil
}

func (f *HTTPFile) add(text string) error {
	for _, found := range reference.FindAllStringSubmatch(text, -1) {
		if _, isKnown := f.Variables[found[1]]; !isKnown {
			return fmt.Errorf("{{%s}} is not a variable from above the first request", found[1])
		}
	}
	parts := section.FindStringSubmatch(text)
	if parts == nil {
		return errors.New(`not "# @name name", "METHOD target", "Header: value" lines, a blank line, JSON`)
	}
	request := HTTPFileRequest{
		Name: parts[1], Method: parts[2], Target: parts[3], Header: http.Header{}, Body: strings.TrimSpace(parts[5]),
	}
	for line := range strings.Lines(parts[4]) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		request.Header.Add(name, value)
	}
	switch {
	case request.Body != "" && !json.Valid([]byte(f.Fill(request.Body, nil))):
		return errors.New("the body is not JSON to every editor")
	case request.Body != "" && request.Header.Get("Content-Type") == "":
		return fmt.Errorf("%s has a body and no Content-Type", request.Name)
	case slices.ContainsFunc(f.Requests, func(r HTTPFileRequest) bool { return r.Name == request.Name }):
		return fmt.Errorf("%s is there twice", request.Name)
	}
	f.Requests = append(f.Requests, request)
	return nil
}

// PlayHTTPFile sends the requests of a file from top to bottom, filled with the values, and requires the statuses of
// want, which names all of them. A value that send adds is known to the later requests.
func PlayHTTPFile(
	t testing.TB, path string, values map[string]string, want map[string]int, send func(HTTPFileRequest) (status int),
) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := ParseHTTPFile(string(content))
	require.NoError(t, err)
	for _, request := range file.Requests {
		require.Contains(t, want, request.Name, "a request without a status")
		request.Target, request.Body = file.Fill(request.Target, values), file.Fill(request.Body, values)
		require.Equal(t, want[request.Name], send(request), "%s %s", request.Name, request.Target)
	}
	require.Len(t, file.Requests, len(want))
}

// Fill replaces references by values, or by the file's variables.
func (f HTTPFile) Fill(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "{}")
		if value, isGiven := values[name]; isGiven {
			return value
		}
		return f.Variables[name]
	})
}
