package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a service in a process of its own. Where it is killed, another one takes its place.
type process struct {
	name    string
	program string
	environ []string
	log     *os.File // that all its lives write to

	kills chan chan struct{} // what is sent is closed when the next one runs
}

// stopProcess is how long a service may take to drain: its own limit, and a moment.
const stopProcess = 20 * time.Second

// run runs the service until ctx ends.
func (p *process) run(ctx context.Context) error {
	var replaced chan struct{}
	for {
		// Not CommandContext: the service is told to drain, and is given the time.
		cmd := exec.Command(p.program, "serve", p.name)
		cmd.Env, cmd.Stdout, cmd.Stderr = p.environ, p.log, p.log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the program that started it
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start: %w", err)
		}
		if replaced != nil {
			close(replaced)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case replaced = <-p.kills:
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("kill: %w", err)
			}
			if err := <-ended; err == nil { // else it says that it was killed, which is no news
				return fmt.Errorf("ended by itself (%s has why)", p.log.Name())
			}
		case err := <-ended:
			return fmt.Errorf("ended by itself (%s has why): %w", p.log.Name(), err)
		case <-ctx.Done():
			return p.stop(cmd, ended)
		}
	}
}

func (p *process) stop(cmd *exec.Cmd, ended <-chan error) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop: %w", err)
	}
	timer := time.NewTimer(stopProcess)
	defer timer.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("stop (%s has why): %w", p.log.Name(), err)
		}
		return nil
	case <-timer.C:
		_ = cmd.Process.Kill()
		return fmt.Errorf("stop: still there after %s: %w", stopProcess, <-ended)
	}
}

// replace kills the process, and returns when the next one runs. It need not be ready yet.
func (p *process) replace(ctx context.Context) error {
	replaced := make(chan struct{})
	select {
	case p.kills <- replaced:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-replaced:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
