package kv

import (
	"context"
	"fmt"
	"sync"
)

// twins serializes the calls for one id in this process.
type twins struct {
	mu      sync.Mutex
	running map[digest]chan struct{}
	// unmarked are ids with an effect and no mark, with the revision to mark, after an outage.
	unmarked map[digest]uint64
}

func newTwins() *twins {
	return &twins{running: map[digest]chan struct{}{}, unmarked: map[digest]uint64{}}
}

func (t *twins) enter(ctx context.Context, id digest) (leave func(), err error) {
	for {
		t.mu.Lock()
		other, busy := t.running[id]
		if !busy {
			ended := make(chan struct{})
			t.running[id] = ended
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.running, id)
				t.mu.Unlock()
				close(ended)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the same event: %w", context.Cause(ctx))
		}
	}
}

func (t *twins) leaveUnmarked(id digest, revision uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unmarked[id] = revision
}

func (t *twins) takeUnmarked(id digest) (revision uint64, left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	revision, left = t.unmarked[id]
	delete(t.unmarked, id)
	return revision, left
}
