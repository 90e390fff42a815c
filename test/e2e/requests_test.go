package e2e

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

// api/requests.http promises that it works from top to bottom.
func TestTheRequestsThatPeopleTry(t *testing.T) {
	inProcess(t)
	h := newStack(t)
	h.start(t, customerService)
	h.start(t, notificationService)
	person := h.client()
	want := map[string]int{
		"signup": http.StatusCreated, "profile": http.StatusOK, "mail": http.StatusOK, "rename": http.StatusOK,
		"verify": http.StatusOK, "link": http.StatusOK, "verified": http.StatusOK, "taken": http.StatusConflict,
		"reused": http.StatusUnprocessableEntity, "mistake": http.StatusUnprocessableEntity,
	}
	content, err := os.ReadFile("../../api/requests.http")
	require.NoError(t, err)
	file, err := testkit.ParseHTTPFile(string(content))
	require.NoError(t, err)
	mailbox := "http://" + h.box.HTTPAddr()
	values := map[string]string{"customer": person.base, "mailbox": mailbox}
	for _, request := range file.Requests {
		status, known := want[request.Name]
		require.True(t, known, "request %q is new: what should it answer?", request.Name)
		delete(want, request.Name)
		target := file.Fill(request.Target, values)
		if request.Name == "mail" {
			h.awaitMail(t)
			_, mail := servicetest.Get(t, target)
			values["token"] = tokenIn(t, mail)
			continue
		}
		path, ours := strings.CutPrefix(target, person.base)
		require.True(t, ours, target)
		headers := map[string]string{}
		for name := range request.Header {
			headers[name] = request.Header.Get(name)
		}
		answer := person.insist(t, status, request.Method, path, file.Fill(request.Body, values), headers)
		if request.Name == "signup" {
			values["user_id"] = answer.Body["user_id"].(string)
		}
	}
	require.Empty(t, want, "requests that are gone from the file")
}

func tokenIn(t *testing.T, text string) string {
	t.Helper()
	for word := range strings.FieldsSeq(text) {
		if link, err := url.Parse(word); err == nil && link.Query().Get("token") != "" {
			return link.Query().Get("token")
		}
	}
	require.Fail(t, "no link in the mail", text)
	return ""
}
