package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/web"
)

const (
	// stallTimeout is how long a client may take to read a line.
	stallTimeout = 30 * time.Second
	// progressEvery keeps an operation of a million steps from writing a million lines, and shows that a silent one runs.
	progressEvery = 200 * time.Millisecond
)

// The first line makes the answer a 200. An operation that fails before it gets its own status.
type lines struct {
	call
	control *http.ResponseController
	done    atomic.Int64
	total   atomic.Int64 // 0: not known

	mu    sync.Mutex // the operation and its sign of life take turns
	begun bool
}

func longChange[R any](operation changing[R]) handler {
	return func(c call) {
		asked, err := decode[R](c)
		if err != nil {
			web.WriteProblem(c.w, c.r, err)
			return
		}
		l := &lines{call: c, control: http.NewResponseController(c.w)}
		change := changeOf(asked)
		change.Progress = l.progress
		stop := l.keepTelling()
		defer stop()
		result, err := operation(c.r.Context(), change, asked)
		stop()
		if err == nil {
			l.write(adminapi.Line{Result: &result})
			return
		}
		if result.Count > 0 && !result.DryRun {
			l.write(adminapi.Line{Done: &result.Count}) // it stays done
		}
		if !l.begun {
			web.WriteProblem(c.w, c.r, err)
			return
		}
		l.write(map[string]web.Problem{"problem": web.ProblemOf(c.r, err)})
	}
}

func (l *lines) keepTelling() (stop func()) {
	ctx, cancel := context.WithCancel(l.r.Context())
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			l.write(adminapi.Line{Done: new(l.done.Load()), Total: l.total.Load()})
		}
	})
	return func() {
		cancel()
		beats.Wait()
	}
}

// A lost client ends the request's context, which ends the operation.
func (l *lines) write(line any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/jsonl")
		l.begun = true
	}
	_ = l.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	_ = json.NewEncoder(l.w).Encode(line)
	_ = l.control.Flush()
}

func (l *lines) progress(done, total int64) {
	l.total.Store(total)
	l.done.Store(done)
}
