package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
)

func TestAPageIsForBrowsers(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, // Firefox, Chrome, Safari
		"text/html":                         true,
		"TEXT/HTML; charset=utf-8":          true,
		"text/html;q=0.5, */*;q=0.1":        true,
		"":                                  false,
		"*/*":                               false, // curl
		"text/*":                            false,
		"application/json, text/plain, */*": false,
		"application/json, text/html;q=0.9": false,
		"text/htmlx":                        false,
		";;;,text/htmlx":                    false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept", accept)
		require.Equal(t, want, web.WantsPage(r), accept)
	}
}

func TestAProblemIsAPageForAPerson(t *testing.T) {
	t.Parallel()
	s := serve(t, web.Config{}, &web.Server{})
	got := s.send(t, http.MethodGet, "/nowhere", map[string]string{"Accept": "text/html"})
	require.Equal(t, http.StatusNotFound, got.status)
	require.Equal(t, "text/html; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, "Accept", got.header.Get("Vary"))
	require.Contains(t, got.header.Get("Content-Security-Policy"), "form-action 'self'; base-uri 'none'")
	require.Contains(t, got.body, "<h1>Not found</h1>")
	require.Contains(t, got.body, got.header.Get("X-Request-Id"), "what the log knows it by")

	require.Equal(t, web.CodeNotFound, s.send(t, http.MethodGet, "/nowhere", nil).problem(t).Code)
}
