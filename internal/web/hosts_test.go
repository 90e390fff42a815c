package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
)

// A foreign page may point its own name at the listener's address.
func TestAListenerAnswersToItsOwnNames(t *testing.T) {
	t.Parallel()
	handler := web.ForHosts([]string{"customer", "Admin.Example.org"}, "in THESE_HOSTS", http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for host, want := range map[string]int{
		"localhost":              http.StatusNoContent,
		"localhost.:8081":        http.StatusNoContent,
		"127.0.0.1:8081":         http.StatusNoContent,
		"[::1]:8081":             http.StatusNoContent,
		"admin.example.org":      http.StatusNoContent,
		"":                       http.StatusNoContent,
		"evil.example":           http.StatusMisdirectedRequest,
		"localhost.evil.example": http.StatusMisdirectedRequest,
		"evil.localhost":         http.StatusMisdirectedRequest,
		"2130706433":             http.StatusMisdirectedRequest,
		"[evil.example]:8081":    http.StatusMisdirectedRequest,
		":8081":                  http.StatusNoContent,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = host
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		require.Equal(t, want, recorder.Code, host)
		if want == http.StatusMisdirectedRequest {
			got := answer{status: recorder.Code, header: recorder.Header(), body: recorder.Body.String()}
			require.Equal(t, web.CodeHostNotAllowed, got.problem(t).Code)
			require.Contains(t, got.problem(t).Detail, "name the host in THESE_HOSTS.", "where the listener's names come from")
		}
	}
}
