package service

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
)

// shared is something that a server is asked, once at a time however many want to know: a readiness check, a source of
// gauges, why the service waits. Each of those who ask waits no longer than the timeout. A question that is late goes on
// without them, is not asked a second time meanwhile, and its answer is the next one's.
type shared[T any] struct {
	ask     func(ctx context.Context) (T, error)
	timeout time.Duration
	age     time.Duration // up to which an answer is as good as a new one

	asking singleflight.Group
	last   answer[T] // of once, which runs once at a time
}

type answer[T any] struct {
	value T
	err   error
	at    time.Time
}

// get returns an answer, and with an error of ask what it gave all the same.
func (s *shared[T]) get() (value T, err error) {
	select {
	case asked := <-s.asking.DoChan("", s.once):
		given := asked.Val.(answer[T])
		return given.value, given.err
	case <-time.After(s.timeout):
		return value, s.late()
	}
}

func (s *shared[T]) late() error { return fmt.Errorf("no answer within %s", s.timeout) }

func (s *shared[T]) once() (any, error) {
	if time.Since(s.last.at) < s.age {
		return s.last, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.timeout, s.late())
	defer cancel()
	var given answer[T]
	given.err = protect(ctx, func(ctx context.Context) (err error) {
		given.value, err = s.ask(ctx)
		return err
	})
	given.at = time.Now()
	s.last = given
	return given, nil
}
