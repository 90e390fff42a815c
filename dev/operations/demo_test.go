package operations_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/devstack"
	"example.com/twinbox/internal/service"
)

// TestMain lets the services of a demonstration be this program, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		os.Exit(devstack.Run(service.SignalContext(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// demoFor is 0 by default because TestDemo takes long: make test-long runs it.
var demoFor = flag.Duration("operations.demo", 0, "play the demonstration for that time")

func TestDemo(t *testing.T) {
	t.Parallel()
	if *demoFor == 0 {
		return
	}
	var stdout, stderr bytes.Buffer
	code := devstack.Run(t.Context(), []string{"demo", "--for", demoFor.String(), "--outage", "1s"}, &stdout, &stderr)
	out := strings.Join(strings.Fields(stdout.String()), " ")
	t.Log(stdout.String(), stderr.String())
	require.Zero(t, code)
	require.Regexp(t, `\d+ requests have their first answer again; \d+ events were published again`, out)
	for _, fault := range []string{"poison", "kill customer", "kill notification", "no Kafka", "no PostgreSQL"} {
		require.Contains(t, out, fault)
	}
	require.Equal(t, 4, strings.Count(out, "ready again after"))
	require.Regexp(t, `nothing lost, doubled, altered, invented, reordered: \d+ events`, out)
	require.Regexp(t, `all \d+ signed up have arrived`, out)
}

func TestADemosSettings(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--rate", "0"}, {"--rate", "1e6"}, {"--for", "1ms"}, {"--outage", "-1s"}, {"--inject", "rain"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 2, devstack.Run(t.Context(), append([]string{"demo"}, args...), &stdout, &stderr), args)
		require.Empty(t, stdout.String(), args)
		require.Contains(t, stderr.String(), args[0], args)
	}
	var stdout, stderr bytes.Buffer
	require.Equal(t, 2, devstack.Run(t.Context(), []string{"serve", "none"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "there is no service none")
}
