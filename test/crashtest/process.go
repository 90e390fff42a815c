package crashtest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

// Patience is how long a test waits for a process before it fails.
const Patience = time.Minute

// Process is a child, seen from the test, which kills it at its end. A test that fails logs the child's standard error.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{}
	err   error // read after ended

	mu    sync.Mutex
	lines []string
	log   strings.Builder
}

// Start starts a process with its role, which must survive JSON.
func Start(t testing.TB, role any) *Process {
	t.Helper()
	told, err := json.Marshal(role)
	require.NoError(t, err)
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, "-test.run=^$") // the cleanup below ends it
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), variable+"="+string(told))
	p.cmd.Stderr = (*stderr)(p)
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			p.add(scanner.Text())
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("stderr of process %d:\n%s", p.cmd.Process.Pid, &p.log)
		}
	})
	return p
}

type stderr Process

func (w *stderr) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(text)
}

func (p *Process) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
}

// Count returns how many of the printed lines begin with prefix.
func (p *Process) Count(prefix string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.HasPrefix(line, prefix) {
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
		case <-p.ended:
			require.GreaterOrEqual(t, p.Count(prefix), n, "the process ended (%v) before it printed %q so often", p.err, prefix)
		default:
		}
		return p.Count(prefix) >= n
	}, "the process prints %q not %d times", prefix, n)
}

// Signal sends a signal. It does nothing when the process has ended.
func (p *Process) Signal(signal os.Signal) { _ = p.cmd.Process.Signal(signal) }

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
		p.Signal(syscall.SIGCONT)
		return goesOn
	}, "the process does not go on")
}

// CloseInput ends the process's standard input.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait returns how the process ended. The test fails after [Patience].
func (p *Process) Wait(t testing.TB) error {
	t.Helper()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(Patience):
		require.FailNow(t, "the process does not end")
		return nil
	}
}
