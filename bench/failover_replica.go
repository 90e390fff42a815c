package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// replica is a process of a service, at an address and with a configuration that it keeps when it is started again.
type replica struct {
	name    string
	program string
	environ []string
	api     string // host:port; "" for a service without one
	admin   string
	log     string // file that all its lives write to

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone
}

// start starts the process and does not wait for it.
func (r *replica) start() error {
	log, err := os.OpenFile(r.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	// Not CommandContext: the stack ends its processes itself, and a fault is not an end.
	r.cmd = exec.Command(r.program, "serve") //nolint:noctx // see above
	r.cmd.Env, r.cmd.Stderr = r.environ, log
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", r.name, err)
	}
	cmd, ended := r.cmd, make(chan struct{})
	r.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // that it was killed is no news
	}()
	return nil
}

func (r *replica) runs() bool {
	if r.ended == nil {
		return false
	}
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL and returns when it was sent.
func (r *replica) kill() (time.Time, error) {
	at := time.Now()
	if err := r.cmd.Process.Kill(); err != nil {
		return at, fmt.Errorf("kill %s: %w", r.name, err)
	}
	<-r.ended
	return at, nil
}

// stop ends the process in good order.
func (r *replica) stop(ctx context.Context) error {
	if err := r.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", r.name, context.Cause(ctx))
	}
}

func (r *replica) signal(signal os.Signal) error {
	if err := r.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("signal %s: %w", r.name, err)
	}
	return nil
}

// readyPoll is how often a process is asked whether it is ready.
const readyPoll = 20 * time.Millisecond

// awaitReady returns when the process says that it is ready.
func (r *replica) awaitReady(ctx context.Context) error {
	return r.awaitAnswer(ctx, "http://"+r.admin+"/readyz", func(status int) bool { return status == http.StatusOK })
}

// awaitUp returns when the process answers requests of its API.
func (r *replica) awaitUp(ctx context.Context) error {
	return r.awaitAnswer(ctx, "http://"+r.api+"/v1/customers/none", func(int) bool { return true })
}

func (r *replica) awaitAnswer(ctx context.Context, url string, enough func(status int) bool) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if status, err := get(ctx, url); err == nil && enough(status) {
			return nil
		}
		select {
		case <-tick.C:
		case <-r.ended:
			return fmt.Errorf("%s ended by itself: %s", r.name, lastLines(r.log))
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %s", r.name, context.Cause(ctx), lastLines(r.log))
		}
	}
}

func get(ctx context.Context, url string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// lastLines is the end of a log, for an error that is about it.
func lastLines(path string) string {
	const most = 2000
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-most):])
}

// build makes the services' programs in the folder.
func build(ctx context.Context, dir string) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator),
		"example.com/twinbox/cmd/customer", "example.com/twinbox/cmd/notification")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build services: %w: %s", err, out)
	}
	return nil
}

// freeAddresses are addresses of ports that were free a moment ago. A replica needs one that it can have again.
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
