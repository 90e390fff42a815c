package crashtest

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/child"
	"example.com/twinbox/test/testkit"
)

// Process is a child, seen from the test, which kills it at its end. The test's log has the child's standard error.
type Process struct {
	*child.Process

	stdin io.Closer
	out   string // file of its standard output
}

// Start starts a process with its role, which must survive JSON.
func Start(t testing.TB, role any) *Process {
	t.Helper()
	told, err := json.Marshal(role)
	require.NoError(t, err)
	path, err := os.Executable()
	require.NoError(t, err)
	p := &Process{out: filepath.Join(t.TempDir(), "stdout")}
	stdout, err := os.Create(p.out)
	require.NoError(t, err)
	defer stdout.Close()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, "-test.run=^$") // the cleanup below ends it
	cmd.Env = append(os.Environ(), variable+"="+string(told))
	cmd.Stdout, cmd.Stderr = stdout, t.Output()
	p.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	p.Process, err = child.Start(cmd, syscall.SIGKILL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill()) })
	return p
}

// Count returns how many of the printed lines begin with prefix.
func (p *Process) Count(prefix string) (n int) {
	printed, _ := os.ReadFile(p.out)
	for line := range strings.Lines(string(printed)) {
		if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, "\n") {
			n++
		}
	}
	return n
}

// Await returns when the process has printed n lines that begin with prefix. The test fails when the process ends
// first.
func (p *Process) Await(t testing.TB, n int, prefix string) {
	t.Helper()
	testkit.Until(t, func() bool {
		select {
		case <-p.Done():
			require.GreaterOrEqual(t, p.Count(prefix), n, "it ended (%v) before it printed %q so often", p.Err(), prefix)
		default:
		}
		return p.Count(prefix) >= n
	}, "the process prints %q not %d times", prefix, n)
}

// Thaw lets a frozen process continue. It repeats the signal until one arrives after the stop, and sends one more after
// the child has printed that it continues. The child may print so before its threads stop:
//
//	test   sends the signal
//	child  sends itself the stop, finds the signal, prints "thawed"
//	child  stops: the first thread that gets the stop need not be the one that sent it
func (p *Process) Thaw(t testing.TB) {
	t.Helper()
	testkit.Until(t, func() bool {
		goesOn := p.Count(thawed) > 0
		require.NoError(t, p.Signal(syscall.SIGCONT))
		return goesOn
	}, "the process does not go on")
}

// CloseInput ends the process's standard input.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Wait returns how the process ended. The test fails after [testkit.WaitLimit].
func (p *Process) Wait(t testing.TB) error {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(testkit.WaitLimit):
		require.FailNow(t, "the process does not end")
	}
	return p.Err()
}
