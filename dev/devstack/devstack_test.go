package devstack

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/localtest"
	examples "example.com/twinbox/examples/services"
	"example.com/twinbox/internal/services"
)

// invoke runs a command line whose context has ended already, so that a command that gets as far as starting stops.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":            {[]string{"--help"}, 0, "TWINBOX_*", ""},
		"help of run":     {[]string{"run", "--help"}, 0, "TWINBOX_CUSTOMER_ADDR", ""},
		"no command":      {nil, 2, "", "devstack: expected"},
		"unknown command": {[]string{"walk"}, 2, "", "walk"},
		"unknown flag":    {[]string{"run", "--port=1"}, 2, "", "--port"},
		"unknown setting": {[]string{"run", "--set", "X=1", "--dir", "none"}, 2, "", "no service reads it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := invoke(t, test.args...)
			require.Equal(t, test.code, code)
			require.Contains(t, stdout, test.stdout)
			require.Contains(t, stderr, test.stderr)
			require.Equal(t, test.stderr == "", stderr == "")
		})
	}
}

// Where an example listens is chosen by its name, and the advice can be pasted.
func TestAnExamplesBusyPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	args := []string{"run", "--dir", filepath.Join(t.TempDir(), "state"), "--examples"}
	for _, s := range examples.All() {
		args = append(args, "--service-addr", s.Name+"=127.0.0.1:0", "--service-admin-addr", s.Name+"=127.0.0.1:0")
	}
	var stderr bytes.Buffer
	args = append(args, "--service-addr", "order="+taken.Addr().String())
	require.Equal(t, 1, run(t.Context(), args, &bytes.Buffer{}, &stderr))
	require.Contains(t, stderr.String(), "Order API: "+taken.Addr().String()+" is in use; choose another with "+
		"--service-addr=order=127.0.0.1:0 or TWINBOX_SERVICE_ADDR=order=127.0.0.1:0")
}

// A first make run compiles no example, and no NATS server for one.
func TestWhatMakeRunCompilesWithoutExamples(t *testing.T) {
	t.Parallel()
	list := func(flags ...string) string {
		packages, err := exec.CommandContext(t.Context(), "go", append(append([]string{"list", "-deps"}, flags...), "../cmd/devstack")...).Output()
		require.NoError(t, err)
		return string(packages)
	}
	require.Contains(t, list(), "/examples/")
	without := list("-tags", "noexamples")
	require.NotContains(t, without, "/examples/")
	require.NotContains(t, without, "nats-io/")
}

func TestBusyPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	var stderr bytes.Buffer
	code := run(t.Context(), []string{
		"run", "--dir", filepath.Join(t.TempDir(), "state"), "--customer-addr", taken.Addr().String(),
	}, &bytes.Buffer{}, &stderr)
	require.Equal(t, 1, code)
	require.Contains(t, stderr.String(), taken.Addr().String()+" is in use; choose another with --customer-addr")
}

// What people may set they can set by a flag and by a variable, and the ports are those of the README.
func TestDefaults(t *testing.T) {
	t.Parallel()
	var commands Commands
	parser, err := kong.New(&commands, kong.DefaultEnvars("TWINBOX"))
	require.NoError(t, err)
	_, err = parser.Parse([]string{"run"})
	require.NoError(t, err)
	run := commands.Run
	require.Equal(t, []string{".twinbox", "127.0.0.1:8025", "127.0.0.1:1025", "127.0.0.1:9092"},
		[]string{run.Dir, run.MailboxAddr, run.SMTPAddr, run.KafkaAddr})
	require.Equal(t, local.Listen{API: "127.0.0.1:8080", Admin: "127.0.0.1:8081"}, run.listen()["customer"])
	for _, s := range services.All() { // each at the address that it has by itself
		want := local.Listen{API: s.Unset().Value("HTTP_ADDR"), Admin: s.Unset().Value("ADMIN_ADDR")}
		require.Equal(t, want, run.listen()[s.Name], s.Name)
	}
	require.Len(t, run.listen(), len(services.All()))
	run.Examples = true
	for _, s := range examples.All() {
		want := local.Listen{API: s.Unset().Value("HTTP_ADDR"), Admin: s.Unset().Value("ADMIN_ADDR")}
		require.Equal(t, want, run.listen()[s.Name], s.Name)
	}
	for _, node := range parser.Model.Children {
		if node.Name == "demo" {
			continue // what one show is told is no setting of a machine
		}
		for _, flag := range node.Flags {
			require.True(t, flag.Hidden || len(flag.Envs) > 0, flag.Name)
		}
	}
}

func TestVariables(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for name, value := range map[string]string{
		"TWINBOX_DIR": dir, "TWINBOX_SET": "OUTBOX_POLL=often", "TWINBOX_CUSTOMER_ADDR": "127.0.0.1:0",
	} {
		t.Setenv(name, value)
	}
	code, _, stderr := invoke(t, "run")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "OUTBOX_POLL")
}

// The whole way through the command line, once: up, summary, down.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(localtest.Folder(t), "state")
	args := []string{"run", "--dir", dir, "--set", "OUTBOX_POLL=100ms", "--set", "MAIL_LEASE=90s"}
	for _, part := range []string{"customer", "customer-admin", "notification-admin", "mailbox", "smtp", "kafka"} {
		args = append(args, "--"+part+"-addr", "127.0.0.1:0")
	}
	args = append(args, "--console-addr", "127.0.0.1:0")
	args = append(args, "--examples")
	for _, s := range examples.All() {
		args = append(args, "--service-addr", s.Name+"=127.0.0.1:0", "--service-admin-addr", s.Name+"=127.0.0.1:0")
	}
	for _, part := range []string{"forwarder", "forwarder-admin", "nats"} {
		args = append(args, "--"+part+"-addr", "127.0.0.1:0")
	}
	for _, setting := range localtest.Patient() {
		args = append(args, "--set", setting)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &untilSummary{done: cancel}
	var stderr bytes.Buffer
	require.Equal(t, 0, run(ctx, args, out, &stderr), stderr.String())
	require.Contains(t, out.text.String(), "curl -XPOST 127.0.0.1:")
	require.Contains(t, out.text.String(), "Order API")
	require.Contains(t, out.text.String(), "Forwarded")
	require.Empty(t, stderr.String())
}

// untilSummary ends the run when the summary is complete.
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
