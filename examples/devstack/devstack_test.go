package devstack_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/devstack"
	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	examples "example.com/twinbox/examples/devstack"
	"example.com/twinbox/examples/services"
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

func arguments(dir string) []string {
	args := []string{"run", "--examples", "--dir", filepath.Join(dir, "state")}
	for _, s := range services.All() {
		args = append(args, "--"+s.Name+"-admin-addr", "127.0.0.1:0")
		if s.Unset().Reads("HTTP_ADDR") {
			args = append(args, "--"+s.Name+"-addr", "127.0.0.1:0")
		}
	}
	parts := []string{"customer", "customer-admin", "notification-admin", "mailbox", "smtp", "kafka"}
	for _, p := range programs {
		parts = append(parts, p.addresses...)
	}
	for _, part := range parts {
		args = append(args, "--"+part+"-addr", "127.0.0.1:0")
	}
	return args
}

// The advice can be pasted.
func TestAnExamplesBusyPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	var stderr bytes.Buffer
	args := append(arguments(t.TempDir()), "--order-addr", taken.Addr().String())
	require.Equal(t, 1, devstack.Run(t.Context(), args, &bytes.Buffer{}, &stderr, extension()))
	require.Contains(t, stderr.String(), "Order API: "+taken.Addr().String()+" is in use; take a free port with "+
		"--order-addr=127.0.0.1:0 (make run ARGS=--order-addr=127.0.0.1:0) or TWINBOX_ORDER_ADDR=127.0.0.1:0")
}

func TestExamplesAreAskedFor(t *testing.T) {
	t.Parallel()
	var cfg local.Config
	extension().Add(&cfg)
	require.Empty(t, cfg)
}

func TestRun(t *testing.T) {
	t.Setenv("TWINBOX_CONSOLE_ADDR", "127.0.0.1:0") // for the operations, if they are there
	args := arguments(testkit.Folder(t))
	for _, setting := range stacktest.Patient() {
		args = append(args, "--set", setting)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &untilSummary{done: cancel}
	var stderr bytes.Buffer
	require.Equal(t, 0, devstack.Run(ctx, args, out, &stderr, extension()), stderr.String())
	lines := []string{"Order API", "Payments admin", "Ledger API"}
	for _, p := range programs {
		lines = append(lines, p.line)
	}
	for _, line := range lines {
		require.Contains(t, out.text.String(), line)
	}
	require.NotContains(t, stderr.String(), "level=", "no warnings")
}

type untilSummary struct {
	text strings.Builder
	done func()
}

func (u *untilSummary) Write(p []byte) (int, error) {
	u.text.Write(p)
	if strings.Contains(u.text.String(), "Ctrl-C") {
		u.done()
	}
	return len(p), nil
}
