package realkafka

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is the child. done is closed when it has ended and was waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// startProcess starts the child with its output in the file.
func startProcess(output, name string, args ...string) (*process, error) {
	file, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = childAttributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The child is told to die with the thread that made it, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer close(p.done)
		defer func() { _ = file.Close() }()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.done
}

func (p *process) stop(patience time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
	}
}
