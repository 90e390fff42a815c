package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"example.com/twinbox/internal/failure"
)

// process is one process of a service.
type process struct {
	program    string
	environ    []string
	api, admin string // host:port; api is "" for a service without one

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone
}

// start starts the process and does not wait for it.
func (p *process) start() error {
	// Not CommandContext: withServices ends the processes itself, and a fault is not an end.
	p.cmd = exec.Command(p.program, "serve")       //nolint:noctx // see above
	p.cmd.Env, p.cmd.Stderr = p.environ, os.Stderr // its errors
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.program, err)
	}
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // kill ended it, or awaitReady reports it
	}()
	return nil
}

func (p *process) signal(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal %s: %w", p.program, err)
	}
	return nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// readyLimit is how long a process may take to be ready.
const readyLimit = time.Minute

// awaitReady returns when the process is ready.
func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, fmt.Errorf("not ready within %s", readyLimit))
	defer cancel()
	for !p.isReady(ctx) {
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended", p.program)
		default:
		}
		if err := failure.Sleep(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", p.program, err)
		}
	}
	return nil
}

func (p *process) isReady(ctx context.Context) bool {
	response, err := request(ctx, http.MethodGet, "http://"+p.admin+"/readyz", nil, nil)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// freeAddresses returns addresses of ports that were free a moment ago.
func freeAddresses(ctx context.Context, n int) (addresses []string, err error) {
	for range n {
		listener, listenErr := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if listenErr != nil {
			return nil, errors.Join(err, fmt.Errorf("find a free port: %w", listenErr))
		}
		defer func() { err = errors.Join(err, listener.Close()) }()
		addresses = append(addresses, listener.Addr().String())
	}
	return addresses, nil
}
