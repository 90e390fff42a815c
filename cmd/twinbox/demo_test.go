package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/frame/service"
)

// A second of sign-ups at the system that runs, with everything sent again, ends with the verdict.
func TestDemo(t *testing.T) {
	t.Parallel()
	h := shared(t)
	r := h.twinbox(t, "demo", "--rate", "20", "--for", "1s", "--inject", "duplicates")
	require.Zero(t, r.code, r.stderr)
	out := strings.Join(strings.Fields(r.stdout), " ") // its lines are broken where they are full
	require.Regexp(t, `\d+ requests have their first answer again; \d+ events were published again`, out)
	require.Regexp(t, `nothing lost, doubled, altered, invented, reordered: \d+ events`, out)
	require.Regexp(t, `all \d+ signed up have arrived`, out)
}

func TestWhatTheDemoRefuses(t *testing.T) {
	t.Parallel()
	here, there := shared(t), listener(t, says(aCustomer))
	for name, refused := range map[string]struct {
		run  func() result
		says string
	}{
		"a rate":        {func() result { return here.twinbox(t, "demo", "--rate", "0") }, "--rate is above 0"},
		"a moment":      {func() result { return here.twinbox(t, "demo", "--for", "10ms") }, "--for is below 1s"},
		"a half":        {func() result { return here.twinbox(t, "demo", "--service", "customer") }, "needs all of them"},
		"a fault":       {func() result { return here.twinbox(t, "demo", "--inject", "kill") }, "must be one of"},
		"others' users": {func() result { return at(t, there, "", "demo", "--api", "127.0.0.1:1") }, "add --for-real"},
		"no API":        {func() result { return at(t, there, "", "demo", "--for-real") }, "give it with --api"},
		"no broker": {
			func() result {
				return at(t, there, "", "demo", "--for-real", "--api", "127.0.0.1:1", "--inject", "all")
			}, "--kafka",
		},
	} {
		r := refused.run()
		require.Equal(t, service.ExitUsage, r.code, "%s: %s", name, r.stderr)
		require.Contains(t, r.stderr, refused.says, name)
		require.Empty(t, r.stdout, name)
	}
}

// A system of which an address leads to a stranger is left alone.
func TestADemoLeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	var asked []string
	stranger := listener(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		says(aNotification)(w, r)
	})
	r := at(t, stranger, "", "demo", "--for-real", "--api", strings.TrimPrefix(stranger, "http://"))
	require.Equal(t, exitRefused, r.code)
	require.Contains(t, r.stderr, "is notification, not customer")
	require.Equal(t, []string{"/admin/v1/service"}, asked)
}
