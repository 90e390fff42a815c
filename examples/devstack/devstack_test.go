package devstack_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/devstack"
	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	examples "example.com/twinbox/examples/devstack"
	"example.com/twinbox/examples/services"
	own "example.com/twinbox/internal/services"
	"example.com/twinbox/test/testkit"
)

// program is an example that is not a service.
type program struct {
	extension local.Extension
	addresses []string
	line      string
}

// programs come from the files of optional folders.
var programs []program

func extension() local.Extension {
	var list []local.Extension
	for _, p := range programs {
		list = append(list, p.extension)
	}
	return examples.Extension(list...)
}

func TestExamplesAreAskedFor(t *testing.T) {
	t.Parallel()
	var cfg local.Config
	extension().Add(&cfg)
	require.Empty(t, cfg)
}

func TestRun(t *testing.T) {
	t.Setenv("TWINBOX_CONSOLE_ADDR", "127.0.0.1:0") // for the operations, if they are there
	var parts []string
	lines := []string{"Order API", "Payments admin", "Ledger API"}
	for _, p := range programs {
		parts, lines = append(parts, p.addresses...), append(lines, p.line)
	}
	dir := filepath.Join(testkit.Folder(t), "state")
	args := stacktest.Arguments(dir, append(own.All(), services.All()...), parts...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shown string
	out := &stacktest.Screen{Ready: func(text string) { shown = text; cancel() }}
	var stderr bytes.Buffer
	require.Equal(t, 0, devstack.Run(ctx, append(args, "--examples"), out, &stderr, extension()), stderr.String())
	for _, line := range lines {
		require.Contains(t, shown, line)
	}
	require.NotContains(t, stderr.String(), "level=", "no warnings")
}
