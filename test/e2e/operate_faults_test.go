package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
)

func init() {
	faults["event invented"] = eventInvented
	additions = append(additions, addition{verifying, func(t *testing.T, s *scene) { s.verify(t) }})
}

// Another program writes to the topic in the service's name.
func eventInvented(t *testing.T, s *scene) {
	s.settings = verifying
	s.begin(t, customerService)
	s.signUpAs(t, "ada")
	record := healthy()
	set("ce_source", contract.SourceCustomer)(record)
	s.lay(t, record)
	s.await(t, customerService, "inbox_messages_total", `"customer.profile"`, func(v float64) bool { return v > 1 })
	s.verify(t)
	s.await(t, customerService, "verify_findings", `"ghost"`, positive)
}

const adminToken = "0123456789abcdef0123456789abcdef"

// verifying are settings under which an operator may verify, and which make the pauses of it short.
var verifying = []string{"ADMIN_TOKEN=" + adminToken, "INBOX_HANDLER_TIMEOUT=1s"}

// verify asks Customer to compare what it wrote and consumed.
func (s *scene) verify(t *testing.T) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+s.watched[customerService].admin+"/admin/v1/verify", strings.NewReader("{}"))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+adminToken)
	request.Header.Set("Twinbox-Service", customerService)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(answer))
	require.Contains(t, string(answer), `"verdict"`)
}
