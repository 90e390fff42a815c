package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrEndedEarly is the failure of a task that returned nil before the group stopped it. A consumer that ends
// quietly would otherwise leave a process that is healthy and does nothing.
var ErrEndedEarly = errors.New("ended before it was asked to")

// A PanicError is a panic of a task.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// task is one goroutine of a group. err is written before done is closed and read after.
type task struct {
	name string
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// run runs the task to its end and judges how it ended.
func (t *task) run(run func(ctx context.Context) error) {
	defer close(t.done)
	err := protect(t.ctx, run)
	asked := t.ctx.Err() != nil
	switch {
	case asked && (err == nil || errors.Is(err, context.Canceled)):
	case err == nil:
		t.err = fmt.Errorf("%s: %w", t.name, ErrEndedEarly)
	default:
		t.err = fmt.Errorf("%s: %w", t.name, err)
	}
}

func protect(ctx context.Context, run func(ctx context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return run(ctx)
}

func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}
