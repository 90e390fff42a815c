package devstack

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/dev/local/stacktest"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/test/testkit"
)

// invoke runs a command line whose context has ended, so a start stops again.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err, nil)
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
		"help of run":     {[]string{"run", "--help"}, 0, "TWINBOX_KAFKA_ADDR", ""},
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

func TestWhatMakeRunCompiles(t *testing.T) {
	t.Parallel()
	packages, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../cmd/devstack").Output()
	require.NoError(t, err)
	require.Contains(t, string(packages), "/dev/local\n")
	for pkg := range strings.Lines(string(packages)) {
		for _, unwanted := range []string{"/examples/", "/bench", "/internal/inbox/kv", "github.com/nats-io/"} {
			require.NotContains(t, pkg, unwanted)
		}
		require.NotEqual(t, "testing\n", pkg)
	}
}

func TestBusyPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	var stderr bytes.Buffer
	code := run(t.Context(), []string{
		"run", "--dir", filepath.Join(t.TempDir(), "state"), "--extra-admin-addr", taken.Addr().String(),
	}, &bytes.Buffer{}, &stderr, []local.Extension{newExtension()})
	require.Equal(t, 1, code)
	require.Contains(t, stderr.String(),
		taken.Addr().String()+" is in use; take a free port with --extra-admin-addr=127.0.0.1:0")
}

// The ports are those of the README.
func TestDefaults(t *testing.T) {
	t.Parallel()
	commands := newCommands(nil)
	parser, err := kong.New(commands, kong.DefaultEnvars("TWINBOX"))
	require.NoError(t, err)
	parsed, err := parser.Parse([]string{"run"})
	require.NoError(t, err)
	run := commands.Run
	require.Equal(t, []string{".twinbox", "127.0.0.1:8025", "127.0.0.1:1025", "127.0.0.1:9092"},
		[]string{run.Config.Dir, run.Config.Mailbox, run.Config.SMTP, run.Config.Kafka})
	listen := readAddresses(parsed, nil)
	for _, s := range services.All() {
		want := local.Listen{API: s.Unset().Value("HTTP_ADDR"), Admin: s.Unset().Value("ADMIN_ADDR")}
		require.Equal(t, want, listen[s.Name], s.Name)
	}
	require.Len(t, listen, len(services.All()))
	for _, node := range parser.Model.Children {
		for _, flag := range node.Flags {
			require.True(t, flag.Hidden || len(flag.Envs) > 0, flag.Name)
		}
	}
}

func TestVariables(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for name, value := range map[string]string{
		"TWINBOX_DIR": dir, "TWINBOX_SET": "OUTBOX_POLL=often", "TWINBOX_KAFKA_ADDR": "127.0.0.1:0", "INBOX_BATCH": "7",
	} {
		t.Setenv(name, value)
	}
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"run"}, &bytes.Buffer{}, &stderr, []local.Extension{newExtension()})
	require.Equal(t, 2, code)
	require.Contains(t, stderr.String(), "OUTBOX_POLL")
	require.Contains(t, stderr.String(), "Not used from your shell: INBOX_BATCH. ")
}

func newExtension() local.Extension {
	flags := &struct {
		PageAddr string `help:"A page." default:"127.0.0.1:1"`
	}{}
	extra := stacktest.Service("extra").Describe()
	return local.Extension{
		Flags: flags, Services: []eventing.Described{extra},
		Commands: &struct {
			Greet greetCommand `cmd:"" help:"Say hello."`
		}{},
		Add: func(cfg *local.Config) {
			cfg.Extra = append(cfg.Extra, extra)
			cfg.Programs = append(cfg.Programs, local.Program{
				Name: "page", Title: "Page",
				Listeners: []local.Listener{{Name: "page", Flag: "page-addr", Addr: flags.PageAddr}},
				Run: func(ctx context.Context, _ local.Addresses, _ *slog.Logger, ready func(string)) error {
					ready("http://page/" + flags.PageAddr)
					<-ctx.Done()
					return nil
				},
			})
		},
	}
}

type greetCommand struct{}

func (*greetCommand) Run(to *kong.Context) error {
	_, err := to.Stdout.Write([]byte("hello"))
	return err
}

func TestAnExtensionsFlagsAndCommands(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	extensions := []local.Extension{{}, newExtension()}
	require.Zero(t, run(t.Context(), []string{"greet"}, &stdout, &stderr, extensions), stderr.String())
	require.Equal(t, "hello", stdout.String())
	stdout.Reset()
	require.Zero(t, run(t.Context(), []string{"run", "--help"}, &stdout, &stderr, []local.Extension{newExtension()}))
	require.Contains(t, stdout.String(), "TWINBOX_PAGE_ADDR")
	args := []string{
		"run", "--dir", filepath.Join(t.TempDir(), "state"), "--page-addr", "x", "--extra-admin-addr", "y",
	}
	require.Equal(t, 2, run(t.Context(), args, &stdout, &stderr, []local.Extension{newExtension()}))
	require.Contains(t, stderr.String(), `page: --page-addr "x"`)
	require.Contains(t, stderr.String(), `Extra admin: --extra-admin-addr "y"`)
}

func TestRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(testkit.Folder(t), "state")
	args := append(stacktest.Arguments(dir, services.All(), "page", "extra-admin"), "--set", "INBOX_BATCH=7")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shown string
	out := &stacktest.Screen{Ready: func(text string) { shown = text; cancel() }}
	var stderr bytes.Buffer
	require.Equal(t, 0, run(ctx, args, out, &stderr, []local.Extension{newExtension()}), stderr.String())
	require.Contains(t, shown, "Extra admin")
	require.Regexp(t, `Page +http://page/127.0.0.1:0\n`, shown)
	require.NotContains(t, stderr.String(), "level=", "no warnings")
}
