package console

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func groups(count int) string {
	return `{"items":[{"consumer":"customer.profile","code":"x","type":"t","count":` + strconv.Itoa(count) +
		`,"keys":1,"oldest":"2026-01-02T03:04:05Z","error":"e"}]}`
}

func (b *bundle) look(t *testing.T, path, tag string) (status int, newer, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, http.NoBody)
	require.NoError(t, err)
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	response, err := b.browser.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header.Get("ETag"), string(text)
}

func TestAListIsSentWhenItHasChanged(t *testing.T) {
	t.Parallel()
	b := setup(t, nil).signIn(t)
	b.stub.set("/admin/v1/dead-letters/groups", groups(1))
	status, tag, page := b.look(t, "/dead-letters", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, html.UnescapeString(page), "data-tag=\""+tag)
	status, same, page := b.look(t, "/dead-letters", tag)
	require.Equal(t, http.StatusNotModified, status)
	require.Equal(t, tag, same)
	require.Empty(t, page)
	b.stub.set("/admin/v1/dead-letters/groups", groups(2))
	testkit.Until(t, func() bool {
		status, _, page = b.look(t, "/dead-letters", tag)
		return status == http.StatusOK
	})
	require.Contains(t, page, `<td data-label="Count" class="n">2</td>`)
	b.browser.Jar, _ = cookiejar.New(nil)
	status, _, page = b.look(t, "/dead-letters", tag)
	require.Equal(t, http.StatusForbidden, status)
	require.NotContains(t, page, "customer.profile", "what others may see is for them alone")
}
