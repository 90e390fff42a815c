// Package child runs programs that end with this one. On Linux the kernel signals them when this process dies;
// elsewhere a program outlives a killed parent.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/twinbox/internal/failure"
)

type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts the command in its own process group, out of reach of a terminal's Ctrl-C. The kernel sends it the
// signal death when this process dies.
func Start(cmd *exec.Cmd, death syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	setDeathSignal(cmd.SysProcAttr, death)
	cmd.WaitDelay = 5 * time.Second // the program's own children may hold its output open
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the signal when the thread that forked ends, and Go ends idle threads.
		runtime.LockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended and was waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended: nil while it runs and after exit code 0.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

var ErrEnded = errors.New("it ended before it was ready")

const readyPoll = 10 * time.Millisecond

// Await waits until isReady returns true. It fails with ErrEnded, or with the cause of the end of ctx.
func (p *Process) Await(ctx context.Context, isReady func() bool) error {
	for !isReady() {
		select {
		case <-p.done:
			return ErrEnded
		default:
		}
		if err := failure.Sleep(ctx, readyPoll); err != nil {
			return err
		}
	}
	return nil
}

func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal process %d: %w", p.PID(), err)
	}
	return nil
}

func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	if err == nil {
		<-p.done
	}
	return err
}

// Stop sends SIGTERM, and SIGKILL after the patience. inTime: the program ended before that.
func (p *Process) Stop(patience time.Duration) (inTime bool, err error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return false, err
	}
	select {
	case <-p.done:
		return true, nil
	case <-time.After(patience):
		return false, p.Kill()
	}
}

type Tail struct {
	mu   sync.Mutex
	last []byte
}

const tailBytes = 2048

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-tailBytes):]
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
