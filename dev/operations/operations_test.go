package operations_test

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/devstack"
	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/test/testkit"
)

func TestOperationsOfARunningSystem(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Folder(t), "state")
	args := stacktest.Arguments(dir, services.All(), "console")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	shop := local.Extension{Add: func(cfg *local.Config) {
		cfg.Extra = []eventing.Described{stacktest.Service("shop").Describe()}
	}}
	ready, stderr, code := make(chan string, 1), &strings.Builder{}, make(chan int, 1)
	out := &stacktest.Screen{Ready: func(text string) { ready <- text }}
	go func() { code <- devstack.Run(ctx, args, out, stderr, shop) }()
	var shown string
	select {
	case shown = <-ready:
	case <-code:
		require.Fail(t, "it has ended", stderr)
	}
	summary := regexp.MustCompile(`^\s+twinbox is ready after \S+\s+Console +(\S+)\n +signs in one browser`)
	link := summary.FindStringSubmatch(shown)
	require.NotNil(t, link, shown)
	page, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Head(link[1])
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.Len(t, page.Request.Response.Cookies(), 1, "its link signs in")
	operators, err := client.ReadOperators(dir)
	require.NoError(t, err)
	require.ElementsMatch(t, append(services.Names(), "shop"), slices.Collect(maps.Keys(operators.Services)))
	for _, addr := range operators.Services {
		require.Contains(t, shown, addr)
	}
	stop()
	require.Zero(t, <-code, stderr)
	_, err = client.ReadOperators(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotContains(t, stderr.String(), "level=", "no warnings")
}
