package e2e

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
)

// api/requests.http works from top to bottom, as its first line promises.
func TestTheRequestsThatPeopleTry(t *testing.T) {
	parallel(t)
	h := newHouse(t)
	h.start(t, customerService)
	h.start(t, notificationService)
	person := h.client()
	want := map[string]int{
		"signup": http.StatusCreated, "profile": http.StatusOK, "mails": http.StatusOK, "rename": http.StatusOK,
		"verify": http.StatusOK, "link": http.StatusOK, "verified": http.StatusOK, "taken": http.StatusConflict,
		"reused": http.StatusUnprocessableEntity, "mistake": http.StatusUnprocessableEntity,
	}
	values := map[string]string{"customer": person.base, "mailbox": "http://" + h.box.HTTPAddr()}
	for _, request := range readRequests(t) {
		status, known := want[request.name]
		require.True(t, known, "request %q is new: what should it answer?", request.name)
		delete(want, request.name)
		base, path, _ := strings.Cut(fill(values, request.url), "/v1/")
		if request.name == "mails" {
			link, err := url.Parse(h.awaitMail(t)[0].Links[0])
			require.NoError(t, err)
			values["token"] = link.Query().Get("token")
			continue
		}
		require.Equal(t, person.base, base, request.name)
		answer := person.insist(t, status, request.method, "/v1/"+path, fill(values, request.body), request.headers)
		if id, ok := answer.Body["user_id"].(string); ok {
			values[request.name+".response.body.user_id"] = id
		}
	}
	require.Empty(t, want, "requests that are gone from the file")
}

type httpRequest struct {
	name, method, url, body string
	headers                 map[string]string
}

var (
	placeholder = regexp.MustCompile(`\{\{([^}]+)\}\}`)
	requestLine = regexp.MustCompile(`^(GET|POST|PATCH) (\S+)$`)
)

func fill(values map[string]string, text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		return values[strings.Trim(found, "{}")]
	})
}

// readRequests reads as much of the format as the file uses: parts between ###, a name, a line, headers, a body.
func readRequests(t *testing.T) []httpRequest {
	t.Helper()
	file, err := api.Files.ReadFile("requests.http")
	require.NoError(t, err)
	var requests []httpRequest
	for _, part := range strings.Split(string(file), "\n###")[1:] {
		request := httpRequest{headers: map[string]string{}}
		head, body, _ := strings.Cut(part, "\n\n")
		for _, line := range strings.Split(head, "\n")[1:] {
			name, isName := strings.CutPrefix(line, "# @name ")
			header, value, isHeader := strings.Cut(line, ": ")
			switch match := requestLine.FindStringSubmatch(line); {
			case isName:
				request.name = name
			case match != nil:
				request.method, request.url = match[1], match[2]
			case isHeader:
				request.headers[header] = value
			}
		}
		request.body = strings.TrimSpace(body)
		requests = append(requests, request)
	}
	return requests
}
