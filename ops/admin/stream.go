package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.com/twinbox/engine/audit"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

const (
	// stallTimeout is how long a client may take no line.
	stallTimeout = 30 * time.Second
	// progressEvery keeps an operation of a million steps from writing a million lines.
	progressEvery = 200 * time.Millisecond
	// aliveEvery is when an operation is heard of that has nothing to say: one that counts a large table or waits for
	// a slow handler must not look like a service that does not answer.
	aliveEvery = time.Second
)

// lines is an answer that is written while the operation runs. The first line makes it a 200; an operation that fails
// before that is answered like any other.
type lines struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	done    atomic.Int64

	mu    sync.Mutex // the operation and its sign of life take turns
	begun bool
}

// newLines leaves the listener's read timeout alone: net/http ends it with the body, and [imported] sets its own.
func newLines(w http.ResponseWriter, r *http.Request) *lines {
	return &lines{w: w, r: r, control: http.NewResponseController(w)}
}

// answerLines runs a long operation, and answers with what it tells and, in the last line, with what it returns. An
// error ends the answer as a problem.
func answerLines(
	w http.ResponseWriter, r *http.Request, operation func(ctx context.Context, l *lines) (last any, err error),
) {
	l := newLines(w, r)
	stop := l.keepTelling()
	defer stop()
	last, err := operation(r.Context(), l)
	stop()
	if err != nil {
		l.fail(err)
		return
	}
	l.write(last)
}

// stream runs a long change, which tells how much is done.
func stream(
	w http.ResponseWriter, r *http.Request, request adminapi.Change,
	operation func(ctx context.Context, change audit.Change) (audit.Result, error),
) {
	answerLines(w, r, func(ctx context.Context, l *lines) (any, error) {
		change := request.Asked()
		change.Progress = l.done.Store
		result, err := operation(ctx, change)
		if err != nil && result.Count > 0 && !result.DryRun {
			l.write(adminapi.Line{Done: &result.Count}) // it stays done, so it has to be said
		}
		return adminapi.Line{Result: &result}, err
	})
}

// fail ends the answer with an error.
func (l *lines) fail(err error) {
	if !l.begun {
		web.WriteProblem(l.w, l.r, err)
		return
	}
	l.write(map[string]web.Problem{"problem": web.ProblemOf(l.r, err)})
}

// keepTelling says how much is done when that has changed, and from time to time, until stop is called.
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
				l.write(adminapi.Line{Done: &done})
				said, at = done, time.Now()
			}
		}
	})
	return func() {
		cancel()
		beats.Wait()
	}
}

// write sends one line. A client that is gone ends the request's context, which ends the operation.
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

func (l *lines) begin() {
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/jsonl")
		l.begun = true
	}
}
