package e2e

import (
	"net/http"
	"net/url"
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
	values := map[string]string{"customer": person.base, "mailbox": "http://" + h.box.HTTPAddr()}
	testkit.PlayHTTPFile(t, "../../api/requests.http", values, want, func(r testkit.HTTPFileRequest) int {
		if r.Name == "mail" {
			h.awaitMail(t)
			status, mail := servicetest.Get(t, r.Target)
			values["token"] = tokenIn(t, mail)
			return status
		}
		path, ours := strings.CutPrefix(r.Target, person.base)
		require.True(t, ours, r.Target)
		headers := map[string]string{}
		for name := range r.Header {
			headers[name] = r.Header.Get(name)
		}
		answer := person.insist(t, want[r.Name], r.Method, path, r.Body, headers)
		if r.Name == "signup" {
			values["user_id"] = answer.Body["user_id"].(string)
		}
		return answer.Status
	})
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
