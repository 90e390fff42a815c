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
	// stallTimeout is how long a client may take no line.
	stallTimeout  = 30 * time.Second
	progressEvery = 200 * time.Millisecond
	// An operation that counts a large table or waits for a slow handler must not look like a service that does not
	// answer.
	aliveEvery = time.Second
)

// The first line makes the answer a 200; an operation that fails before is answered like any other.
type lines struct {
	call
	control *http.ResponseController
	done    atomic.Int64
	total   atomic.Int64 // 0: not known

	mu    sync.Mutex // the operation and its sign of life take turns
	begun bool
}

func answerLines[R any](
	c call, operation func(ctx context.Context, l *lines, asked R) (last any, err error),
) {
	asked, err := decode[R](c)
	if err != nil {
		web.WriteProblem(c.w, c.r, err)
		return
	}
	l := &lines{call: c, control: http.NewResponseController(c.w)}
	stop := l.keepTelling()
	defer stop()
	last, err := operation(c.r.Context(), l, asked)
	stop()
	switch {
	case err == nil:
		l.write(last)
	case l.begun:
		l.write(map[string]web.Problem{"problem": web.ProblemOf(c.r, err)})
	default:
		web.WriteProblem(c.w, c.r, err)
	}
}

func (l *lines) keepTelling() (stop func()) {
	ctx, cancel := context.WithCancel(l.r.Context())
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		said, at := int64(0), time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if done := l.done.Load(); done != said || time.Since(at) >= aliveEvery {
				l.write(adminapi.Line{Done: &done, Total: l.total.Load()})
				said, at = done, time.Now()
			}
		}
	})
	return func() {
		cancel()
		beats.Wait()
	}
}

// A client that is gone ends the request's context, which ends the operation.
func (l *lines) write(line any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = json.NewEncoder(l).Encode(line)
	_ = l.control.Flush()
}

// Write passes on what is written, for as long as the client reads it.
func (l *lines) Write(p []byte) (int, error) {
	l.begin()
	_ = l.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	return l.w.Write(p)
}

// progress remembers how much is done, of how much.
func (l *lines) progress(done, total int64) {
	l.total.Store(total)
	l.done.Store(done)
}

func (l *lines) begin() {
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/jsonl")
		l.begun = true
	}
}
