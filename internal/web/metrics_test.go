package web_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/web"
	"example.com/twinbox/test/testkit"
)

func TestRequestsAreCountedByRoute(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := serve(t, web.Config{Registerer: registry}, &web.Server{})
	for _, request := range [][2]string{
		{"GET", "/v1/things/1"},
		{"GET", "/v1/things/2"},
		{"GET", "/nowhere/" + secret},
		{"BREW", "/nowhere"},
		{"GET", "/panic"},
	} {
		s.send(t, request[0], request[1], nil)
	}
	want := `
# HELP http_server_requests_total Requests answered, by class of status: 2xx, 4xx, 5xx.
# TYPE http_server_requests_total counter
http_server_requests_total{method="GET",route="/panic",status="5xx"} 1
http_server_requests_total{method="GET",route="/v1/things/{id}",status="2xx"} 2
http_server_requests_total{method="GET",route="none",status="4xx"} 1
http_server_requests_total{method="_OTHER",route="none",status="4xx"} 1
# HELP http_server_requests_in_flight Requests that are being answered.
# TYPE http_server_requests_in_flight gauge
http_server_requests_in_flight 0
`
	names := []string{"http_server_requests_total", "http_server_requests_in_flight"}
	var err error
	testkit.Until(t, func() bool { // the request is counted after its answer is on the wire
		err = testutil.GatherAndCompare(registry, strings.NewReader(want), names...)
		return err == nil
	}, "%v", &err)
	n, err := testutil.GatherAndCount(registry, "http_server_request_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 4, n, "one histogram for each method and route")
}

func TestRequestsInFlightAreGauged(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := serve(t, web.Config{Registerer: registry}, &web.Server{})
	gauge := func(value string) bool {
		return testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP http_server_requests_in_flight Requests that are being answered.
# TYPE http_server_requests_in_flight gauge
http_server_requests_in_flight `+value+"\n"), "http_server_requests_in_flight") == nil
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.send(t, "GET", "/hold", nil)
	}()
	<-s.entered
	require.True(t, gauge("1"))
	close(s.release)
	<-answered
	testkit.Until(t, func() bool { return gauge("0") })
}
