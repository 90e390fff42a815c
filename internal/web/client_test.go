package web_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
)

func asked(t *testing.T, proxies []netip.Prefix, peer string, forwarded ...string) string {
	t.Helper()
	router := web.NewRouter(web.Config{TrustedProxies: proxies}, slog.New(slog.DiscardHandler))
	client := "never asked"
	router.Get("/", func(_ http.ResponseWriter, r *http.Request) { client = web.ClientOf(r) })
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = peer
	r.Header["X-Forwarded-For"] = forwarded
	router.ServeHTTP(httptest.NewRecorder(), r)
	return client
}

func TestWhoTheClientIs(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	const direct, proxied = "198.51.100.1:4711", "10.0.0.1:4711"
	for name, test := range map[string]struct {
		proxies   []netip.Prefix
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                    {nil, direct, nil, "198.51.100.1"},
		"no proxy is trusted":         {nil, proxied, []string{"203.0.113.7"}, "10.0.0.1"},
		"behind a proxy":              {proxies, proxied, []string{"203.0.113.7"}, "203.0.113.7"},
		"behind two":                  {proxies, proxied, []string{"203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		"what the client wrote first": {proxies, proxied, []string{"192.0.2.1, 203.0.113.7"}, "203.0.113.7"},
		"with a port":                 {proxies, proxied, []string{"203.0.113.7:4711"}, "10.0.0.1"},
		"garbage":                     {proxies, proxied, []string{"unknown"}, "10.0.0.1"},
		"garbage between":             {proxies, proxied, []string{"203.0.113.7, _hidden, 10.0.0.2"}, "10.0.0.1"},
		"one IPv6 network":            {nil, "[2001:db8:1:2:3:4:5:6]:4711", nil, "2001:db8:1:2::"},
		"IPv6 behind a proxy":         {proxies, "[fd00::1]:4711", []string{"2001:db8:1:2::7"}, "2001:db8:1:2::"},
		"an alias of a proxy":         {proxies, proxied, []string{"203.0.113.7, ::ffff:10.0.0.2"}, "203.0.113.7"},
		"no network":                  {proxies, "@", []string{"203.0.113.7"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, asked(t, test.proxies, test.peer, test.forwarded...))
		})
	}
}

func TestTheLimitIsAClientsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		send := limitedRouter(t, 10)
		for range 10 {
			require.Equal(t, http.StatusNoContent, send("203.0.113.7"))
		}
		require.Equal(t, http.StatusTooManyRequests, send("203.0.113.7"))
		require.Equal(t, http.StatusNoContent, send("203.0.113.8"))

		<-time.After(90 * time.Second)
		accepted := 0
		for range 10 {
			if send("203.0.113.7") == http.StatusNoContent {
				accepted++
			}
		}
		require.Equal(t, 5, accepted, "half of the window before still counts")
		<-time.After(2 * time.Minute)
		require.Equal(t, http.StatusNoContent, send("203.0.113.7"))
	})
}

func limitedRouter(t *testing.T, limit int) func(client string) int {
	t.Helper()
	router := web.NewRouter(web.Config{
		RateLimit: limit, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}, slog.New(slog.DiscardHandler))
	router.Get("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return func(client string) int {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = "10.0.0.1:4711"
		r.Header.Set("X-Forwarded-For", client)
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, r)
		return recorder.Code
	}
}
