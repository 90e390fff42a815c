package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// handling notes which records of a run have been dealt with. The time runs from the first call of a handler to the
// return of the last: joining the group is not what is measured.
type handling struct {
	partitions int

	mu          sync.Mutex
	seen        []bool
	left        int
	again       int // records that were handled more than once
	begun, done time.Time
	err         error
	all         chan struct{} // closed when every record was handled
}

func newHandling(r *records) *handling {
	return &handling{
		partitions: r.partitions, seen: make([]bool, len(r.numbers)), left: len(r.numbers),
		all: make(chan struct{}),
	}
}

// begin is called when a handler is.
func (a *handling) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun.IsZero() {
		a.begun = time.Now()
	}
}

// handled is called when a record's transaction has ended and it is to be acknowledged.
func (a *handling) handled(partition int32, offset int64) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	i := int(offset)*a.partitions + int(partition)
	switch {
	case i < 0 || i >= len(a.seen):
		a.err = fmt.Errorf("handled partition %d, offset %d: no record of this run", partition, offset)
		return
	case a.seen[i]:
		a.again++
		return
	}
	a.seen[i] = true
	if a.left--; a.left == 0 {
		a.done = now
		close(a.all)
	}
}

// wait returns when every record was handled.
func (a *handling) wait(ctx context.Context) error {
	select {
	case <-a.all:
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		return fmt.Errorf("%d of %d records not handled: %w", a.left, len(a.seen), context.Cause(ctx))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// rate is records per second.
func (a *handling) rate() float64 { return float64(len(a.seen)) / a.done.Sub(a.begun).Seconds() }
