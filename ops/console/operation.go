package console

import (
	"context"
	"net/http"
	"strconv"
	"sync"
)

// keptOperations is how many are remembered, the newest.
const keptOperations = 50

// operations are the changes that were begun.
type operations struct {
	mu      sync.Mutex
	last    int
	all     map[int]*operation
	running sync.WaitGroup
}

// operation is a change that was begun, and how far it is.
type operation struct {
	mu      sync.Mutex
	state   outcome
	changed chan struct{} // closed and made anew when the state changes
}

func (o *operation) now() outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state
}

func (o *operation) set(change func(*outcome)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.state)
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *operation) watch() (outcome, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state, o.changed
}

// start begins a change, which ends early when the console does: the service then stops where it is.
func (o *operations) start(ctx context.Context, ending <-chan struct{}, asked *change) *operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[int]*operation{}
	}
	o.last++
	delete(o.all, o.last-keptOperations)
	begun := &operation{state: outcome{change: asked, ID: o.last}, changed: make(chan struct{})}
	o.all[o.last] = begun
	ctx, cancel := context.WithCancel(ctx)
	o.running.Go(func() {
		select {
		case <-ending:
			cancel()
		case <-ctx.Done():
		}
	})
	o.running.Go(func() {
		defer cancel()
		result, err := asked.run(ctx, asked, func(done int64) {
			begun.set(func(s *outcome) { s.Progress = done })
		})
		begun.set(func(s *outcome) { s.Result, s.Err, s.Ended = result, err, true })
	})
	return begun
}

func (o *operations) get(id int) *operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[id]
}

// streamOperation sends how far a change is, each time that it gets further, and what came of it as the last.
func (c *Console) streamOperation(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	followed := c.operations.get(id)
	if followed == nil {
		http.NotFound(w, r)
		return
	}
	stream := newEvents(w)
	for {
		state, changed := followed.watch()
		body, err := render("progress", state)
		if err == nil {
			err = stream.send("progress", string(body))
		}
		if err == nil && state.Ended {
			err = stream.send("end", "")
		}
		if err != nil || state.Ended {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		case <-c.ending:
			return
		}
	}
}
