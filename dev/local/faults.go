package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"example.com/twinbox/dev/local/child"
	"example.com/twinbox/dev/local/port"
	"example.com/twinbox/internal/service/eventing"
)

// Faults break a ready stack and mend it, one fault at a time. In [Config.Faults] they make each service a process.
type Faults struct {
	// Program runs one service as "PROGRAM serve NAME", with its settings in the environment.
	Program string

	stack *stack
	parts map[string]*breakable
}

const (
	PartPostgres = "postgresql"
	PartKafka    = "broker"
)

const (
	faultTimeout = 30 * time.Second
	// stopProcess is a service's own limit for its drain, and a moment.
	stopProcess = 20 * time.Second
)

// Interrupt kills a service or a part, and starts it again at its addresses after the pause. It returns the time from
// that start until all services are ready.
func (f *Faults) Interrupt(ctx context.Context, name string, pause time.Duration) (time.Duration, error) {
	b, known := f.parts[name]
	if !known {
		return 0, fmt.Errorf("interrupt %s: there is no such part", name)
	}
	began, err := b.interrupt(ctx, pause)
	if err != nil {
		return 0, fmt.Errorf("interrupt %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, faultTimeout)
	defer cancel()
	err = f.stack.awaitReady(ctx)
	return time.Since(began), err
}

// pickPorts replaces free ports by known ones: a new process listens there again.
func (h *stack) pickPorts(ctx context.Context) error {
	for name, listen := range h.cfg.Services {
		addrs, err := port.Pick(ctx, listen.API, listen.Admin)
		if err != nil {
			return err
		}
		h.cfg.Services[name] = Listen{API: addrs[0], Admin: addrs[1]}
	}
	return nil
}

type processPart struct {
	*child.Process

	log string
}

func (p processPart) Err() error {
	if err := p.Process.Err(); err != nil {
		return fmt.Errorf("%w (the reason is in %s)", err, p.log)
	}
	return nil
}

func (p processPart) Close() error {
	inTime, err := p.Stop(stopProcess)
	if err == nil && !inTime {
		err = fmt.Errorf("process %d still ran after %s", p.PID(), stopProcess)
	}
	return errors.Join(err, p.Err())
}

func (h *stack) startProcess(s eventing.Described) error {
	log, err := h.logs.open(s.Name)
	if err != nil {
		return err
	}
	environ := h.environ(s)
	start := func() (part, error) {
		cmd := exec.Command(h.faults.Program, "serve", s.Name)
		cmd.Env, cmd.Stdout, cmd.Stderr = environ, log, log
		process, err := child.Start(cmd, syscall.SIGTERM)
		return processPart{process, log.Name()}, err
	}
	running, err := start()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	h.at.Services[s.Name] = h.cfg.Services[s.Name]
	h.runPart(s.Name, running, func(context.Context) (part, error) { return start() })
	return nil
}
