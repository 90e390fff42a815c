package admin_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin"
)

func TestWhatIsMeantForAnotherServiceIsRefused(t *testing.T) {
	t.Parallel()
	b, state := world(t)
	before := state()
	send := func(op operation, header, value string) (*http.Response, string) {
		body := ""
		if op.members != nil {
			body = strings.Replace(text(t, op.example), `"dry_run":true`, `"dry_run":false`, 1)
		}
		request, err := http.NewRequestWithContext(t.Context(), op.method, b.server.URL+op.path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set(header, value)
		response, err := b.client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response, string(answer)
	}
	for _, op := range describedOperations(t) {
		for _, wrong := range [][3]string{
			{admin.HeaderService, "tests", "wrong_service"},
			{admin.HeaderService, "", "wrong_service"},
			{admin.HeaderEnvironment, "prod", "wrong_environment"},
		} {
			response, answer := send(op, wrong[0], wrong[1])
			requireProblem(t, response.StatusCode, []byte(answer), http.StatusMisdirectedRequest, wrong[2])
			require.Contains(t, answer, "This is test in the environment here")
			require.Equal(t, "test", response.Header.Get(admin.HeaderService))
			require.Equal(t, "here", response.Header.Get(admin.HeaderEnvironment))
		}
	}
	require.Equal(t, before, state())
	status, answer := b.call(t, "GET", "/admin/v1/service", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"name":"test","environment":"here","mails":true,
		"consumers":["a","customer.mail","customer.profile"]}`, string(answer))
}
