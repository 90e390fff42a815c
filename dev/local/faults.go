package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"example.com/twinbox/internal/failure"
)

// Faults break a running stack and mend it again. Given to [Run] in [Config.Faults], they make each service a process
// of its own, which can be killed. They may be used from when the stack is ready, one at a time.
type Faults struct {
	// Program runs one service when it is called as "PROGRAM serve NAME", with its settings in the environment.
	Program string

	stack            *stack
	postgres, broker *breakable
	processes        map[string]*process
}

// Kill ends a service with SIGKILL. Another process takes its place at once, at the same addresses. It returns when
// that is ready, with how long all of it took.
func (f *Faults) Kill(ctx context.Context, service string) (time.Duration, error) {
	p, known := f.processes[service]
	if !known {
		return 0, fmt.Errorf("kill %s: there is no such process", service)
	}
	began := time.Now()
	if err := p.replace(ctx); err != nil {
		return 0, fmt.Errorf("kill %s: %w", service, err)
	}
	return f.untilReady(ctx, began)
}

// StopPostgres kills the database server, and starts it again after a while. It returns when all services are ready
// again, with how long that took from the start on.
func (f *Faults) StopPostgres(ctx context.Context, lasting time.Duration) (time.Duration, error) {
	return f.stop(ctx, f.postgres, lasting)
}

// StopKafka does the same with the broker.
func (f *Faults) StopKafka(ctx context.Context, lasting time.Duration) (time.Duration, error) {
	return f.stop(ctx, f.broker, lasting)
}

func (f *Faults) stop(ctx context.Context, b *breakable, lasting time.Duration) (time.Duration, error) {
	if err := b.take(); err != nil {
		return 0, fmt.Errorf("stop %s: %w", b.name, err)
	}
	timer := time.NewTimer(lasting)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // it is given back all the same: the services stop more easily with it
	}
	began := time.Now()
	if err := b.give(context.WithoutCancel(ctx)); err != nil {
		return 0, fmt.Errorf("start %s: %w", b.name, err)
	}
	return f.untilReady(ctx, began)
}

func (f *Faults) untilReady(ctx context.Context, began time.Time) (time.Duration, error) {
	err := f.stack.awaitReady(ctx)
	return time.Since(began), err
}

// breakable is a part that can be taken away: its end is not the stack's end while it is.
type breakable struct {
	name  string
	again func(context.Context) (part, error) // starts it where it was
	kill  func(part) error                    // ends it as a crash does

	mu      sync.Mutex
	running part          // nil while it is away
	back    chan struct{} // closed when it is back
}

func (b *breakable) take() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.running
	b.running, b.back = nil, make(chan struct{})
	return b.kill(p)
}

// give starts the part again. What it listened on may be taken for a moment.
func (b *breakable) give(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	pause := failure.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for {
		if b.running, err = b.again(ctx); err == nil {
			close(b.back)
			return nil
		}
		b.running = nil
		timer := time.NewTimer(pause.Next())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (b *breakable) now() (part, chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running, b.back
}

// run watches the part, whose end by itself is the stack's end: services that wait for it for ever would look alive.
func (b *breakable) run(ctx context.Context) error {
	for {
		p, back := b.now()
		if p == nil {
			select {
			case <-back:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-p.Done():
			if now, _ := b.now(); now == p {
				return errors.Join(errors.New("ended by itself"), p.Err(), p.Close())
			}
		case <-ctx.Done():
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.running == nil {
				return nil
			}
			return b.running.Close()
		}
	}
}

// fix gives every address that is to be any free port one that is free now: a process that takes another's place has
// to listen where that did.
func fix(ctx context.Context, listens map[string]Listen) (_ map[string]Listen, err error) {
	fixed := map[string]Listen{}
	take := func(addr string) string {
		if addr == "" || err != nil {
			return addr
		}
		open, failed := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if failed != nil {
			err = fmt.Errorf("find a free port: %w", failed)
			return addr
		}
		defer open.Close() // all of them at the end, so that no port is found twice
		return open.Addr().String()
	}
	for name, listen := range listens {
		fixed[name] = Listen{API: take(listen.API), Admin: take(listen.Admin)}
	}
	return fixed, err
}
