//go:build faults

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

const operatorToken = "0123456789abcdef0123456789abcdef"

func operated(t *testing.T, environ []string) (_ []string, admin string) {
	t.Helper()
	admin = testkit.ReservePort(t)
	return append(environ, "ADMIN_ADDR="+admin, "ADMIN_TOKEN="+operatorToken), admin
}

func TestAnOperatorMendsWhatWasGivenUp(t *testing.T) {
	inProcess(t)
	h := newStack(t)
	environ, admin := operated(t, h.notificationEnv)
	h.notificationEnv = environ
	h.failUntilMended(t, func(string) {
		change(t, admin, "/admin/v1/dead-letters/replay",
			`{"by":"ada","reason":"the table is mended","dry_run":false,"all":true,"filter":{}}`)
	}, func(mail string) {
		change(t, admin, "/admin/v1/mails/retry",
			fmt.Sprintf(`{"by":"ada","reason":"the mailbox has room","dry_run":false,"ids":[%q]}`, mail))
	})
}

func change(t *testing.T, admin, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+admin+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+operatorToken)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body) // one line, or several with what is done so far
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(said))
	require.NotContains(t, string(said), `"errors"`)
}
