package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"example.com/twinbox/dev/local/child"
	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/service"
)

type process struct {
	*child.Process

	program    string
	environ    []string
	api, admin string // host:port; api is "" for a service without one
}

func (p *process) start() (err error) {
	// Not CommandContext: withServices ends the processes itself, and a fault is not an end.
	command := exec.Command(p.program, "serve")        //nolint:noctx // see above
	command.Env, command.Stderr = p.environ, os.Stderr // its errors
	if p.Process, err = child.Start(command, syscall.SIGKILL); err != nil {
		return fmt.Errorf("start %s: %w", p.program, err)
	}
	return nil
}

const readyLimit = time.Minute

func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not ready within %s", readyLimit))
	defer cancel()
	for service.Healthcheck(ctx, p.admin, io.Discard) != nil {
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended", p.program)
		default:
		}
		if err := failure.Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", p.program, err)
		}
	}
	return nil
}
