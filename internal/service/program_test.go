package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/service"
)

func TestMain(m *testing.M) {
	if os.Getenv("TWINBOX_TEST_STUBBORN") != "" {
		stubborn()
	}
	goleak.VerifyTestMain(m)
}

type programConfig struct {
	Database config.Secret `env:"DATABASE_URL,required" format:"postgres" doc:"where it stores"`
	Admin    string        `env:"ADMIN_ADDR" envDefault:"127.0.0.1:8081" format:"listen" doc:"admin listener"`
	Level    string        `env:"LOG_LEVEL" envDefault:"info" oneof:"debug info warn error" doc:"least level logged"`
}

var programEnv = []string{"DATABASE_URL=postgres://u:hunter2@db/x", "ADMIN_ADDR=127.0.0.1:1"}

type outcome struct {
	code           int
	stdout, stderr string
	ran            []string
}

func runProgram(t *testing.T, environ []string, serveErr error, args ...string) outcome {
	t.Helper()
	var o outcome
	program := service.Program[programConfig]{
		Name: "sample",
		Settings: func(cfg programConfig) service.Settings {
			return service.Settings{AdminAddr: cfg.Admin, LogLevel: cfg.Level, LogFormat: "json"}
		},
		Serve: func(_ context.Context, cfg programConfig, host service.Host) error {
			o.ran = append(o.ran, "serve")
			host.Log.Debug("not shown")
			host.Announce(service.Listeners{Admin: cfg.Admin})
			return serveErr
		},
		Commands: []service.Command[programConfig]{{
			Name: "migrate",
			Run: func(_ context.Context, _ programConfig, out io.Writer) error {
				o.ran = append(o.ran, "migrate")
				_, err := fmt.Fprintln(out, "applied 3")
				return err
			},
		}},
	}
	var stdout, stderr bytes.Buffer
	o.code = program.Run(t.Context(), args, environ, &stdout, &stderr)
	o.stdout, o.stderr = stdout.String(), stderr.String()
	require.NotContains(t, o.stdout+o.stderr, "hunter2")
	return o
}

func TestProgram_Commands(t *testing.T) {
	t.Parallel()
	o := runProgram(t, programEnv, nil)
	require.Equal(t, 0, o.code)
	require.Equal(t, []string{"serve"}, o.ran, "serve is the default")
	require.NotContains(t, o.stderr, "not shown")
	var first struct {
		Service       string
		Msg           string
		Time          time.Time
		Configuration map[string]string
	}
	require.NoError(t, json.NewDecoder(strings.NewReader(o.stderr)).Decode(&first))
	require.Equal(t, "starting", first.Msg)
	require.Equal(t, "sample", first.Service)
	require.Equal(t, time.UTC, first.Time.Location())
	require.Equal(t, "postgres://u:***@db/x", first.Configuration["DATABASE_URL"])

	require.Equal(t, []string{"serve"}, runProgram(t, programEnv, nil, "serve").ran)
	o = runProgram(t, programEnv, nil, "migrate")
	require.Equal(t, "applied 3\n", o.stdout)
	require.Equal(t, []string{"migrate"}, o.ran)
}

func TestProgram_Config(t *testing.T) {
	t.Parallel()
	o := runProgram(t, programEnv, nil, "config")
	require.Zero(t, o.code)
	require.Empty(t, o.ran)
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	require.Len(t, lines, 4)
	for i, want := range []string{
		`^VARIABLE +VALUE +DEFAULT +LIMITS +WHAT IT DOES$`,
		`^DATABASE_URL +postgres://u:\*\*\*@db/x +\(required\) +postgres +where it stores$`,
		`^ADMIN_ADDR +127\.0\.0\.1:1 +127\.0\.0\.1:8081 +listen +admin listener$`,
		`^LOG_LEVEL +info +info +debug, info, warn, error +least level logged$`,
	} {
		require.Regexp(t, want, lines[i])
	}
}

func TestProgram_Usage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"server"}, {"serve", "now"}, {""}, {"-v"}} {
		o := runProgram(t, nil, nil, args...)
		require.Equal(t, 2, o.code, args)
		require.Empty(t, o.ran)
		require.Empty(t, o.stdout)
		require.Contains(t, o.stderr, "sample help lists the commands")
	}
	for _, help := range []string{"help", "-h", "--help"} {
		o := runProgram(t, nil, nil, help)
		require.Zero(t, o.code)
		require.Contains(t, o.stdout, "Usage: sample [command]")
	}
}

func TestProgram_BrokenEnvironment(t *testing.T) {
	t.Parallel()
	broken := []string{"DATABASE_URL=mysql://u:hunter2@db/x", "LOG_LEVLE=info"}
	o := runProgram(t, broken, nil, "config")
	require.Equal(t, 2, o.code)
	require.Contains(t, o.stdout, "least level logged", "the settings are listed")
	require.Contains(t, o.stderr, "2 problem(s)")
	require.Equal(t, 1, runProgram(t, broken, nil, "healthcheck").code, "2 is reserved for health checks")
}

func TestProgram_Failure(t *testing.T) {
	t.Parallel()
	o := runProgram(t, programEnv, errors.New("relay: broken"))
	require.Equal(t, 1, o.code)
	require.True(t, strings.HasSuffix(o.stderr, "sample: relay: broken\n"), o.stderr)
	require.Equal(t, 1, runProgram(t, programEnv, nil, "healthcheck").code, "port 1 refuses connections")
}

func stubborn() {
	ctx := service.SignalContext(context.Background())
	fmt.Println("up")
	<-ctx.Done()
	fmt.Println("draining:", context.Cause(ctx))
	select {}
}

func TestSignals_FirstDrainsSecondEnds(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), "TWINBOX_TEST_STUBBORN=1")
			output, err := child.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, child.Start())
			line := make([]byte, 64)
			n, err := output.Read(line)
			require.NoError(t, err)
			require.Equal(t, "up\n", string(line[:n]))

			require.NoError(t, child.Process.Signal(sig))
			n, err = output.Read(line)
			require.NoError(t, err)
			require.Contains(t, string(line[:n]), "draining:")

			// The second signal may come before the handlers are gone.
			ended := make(chan error, 1)
			go func() { ended <- child.Wait() }()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case err = <-ended:
					var exit *exec.ExitError
					require.ErrorAs(t, err, &exit)
					require.Equal(t, sig, exit.Sys().(syscall.WaitStatus).Signal())
					return
				case <-tick.C:
					_ = child.Process.Signal(sig)
				}
			}
		})
	}
}
