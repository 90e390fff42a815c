package postgres

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is a running process whose exit is waited for by one goroutine.
type child struct {
	cmd  *exec.Cmd
	tail *tail
	done chan struct{}
	err  error // valid once done is closed
}

// start runs the command and returns once it is running.
//
// The goroutine keeps its OS thread for as long as the child lives: the kernel sends the parent-death signal when the
// thread that forked ends, not the process. Go ends idle threads, so a thread that was given back could take a
// healthy server with it.
func start(path string, args []string, attr *syscall.SysProcAttr, log io.Writer) (*child, error) {
	c := &child{cmd: exec.Command(path, args...), tail: &tail{}, done: make(chan struct{})}
	c.cmd.Dir = "/" // the working directory may be closed to the user the child runs as
	c.cmd.SysProcAttr = attr
	c.cmd.Stdout = io.MultiWriter(c.tail, log)
	c.cmd.Stderr = c.cmd.Stdout
	c.cmd.Env = environment(c.cmd.Environ())
	c.cmd.WaitDelay = 5 * time.Second // a backend that outlives the postmaster may hold the pipe

	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(c.done)
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-c.done
		return nil, err
	}
	return c, nil
}

// environment removes what would point the child, or initdb's own children, at another server or language.
func environment(environ []string) []string {
	kept := environ[:0]
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANG" && name != "LANGUAGE" {
			kept = append(kept, entry)
		}
	}
	return append(kept, "LC_ALL=C")
}

// signal tells the process something; a process that has ended already is not an error.
func (c *child) signal(sig syscall.Signal) error {
	err := c.cmd.Process.Signal(sig)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// tail keeps the last bytes written to it, for error texts.
type tail struct {
	mu   sync.Mutex
	last []byte
}

const tailBytes = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	if extra := len(t.last) - tailBytes; extra > 0 {
		t.last = append(t.last[:0], t.last[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
