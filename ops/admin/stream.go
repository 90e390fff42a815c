package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
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

	mu    sync.Mutex // the operation and its sign of life take turns
	done  int64
	last  time.Time
	begun bool
}

// newLines leaves the listener's read timeout alone: net/http ends it with the body, and [imported] sets its own.
func newLines(w http.ResponseWriter, r *http.Request) *lines {
	return &lines{w: w, r: r, control: http.NewResponseController(w), last: time.Now()}
}

// answerLines runs a long operation, and answers with what it tells and, in the last line, with what it returns. An
// error ends the answer as a problem.
func answerLines(
	w http.ResponseWriter, r *http.Request, operation func(ctx context.Context, l *lines) (last any, err error),
) {
	l := newLines(w, r)
	stop := l.keepAlive()
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
	change, err := changeOf(request)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	answerLines(w, r, func(ctx context.Context, l *lines) (any, error) {
		change.Progress = l.progress
		result, err := operation(ctx, change)
		if err != nil && result.Count > 0 && !result.DryRun {
			l.tell(result.Count, 0) // it stays done, so it has to be said
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

// keepAlive repeats the count for as long as nothing else is said, until stop is called.
func (l *lines) keepAlive() (stop func()) {
	ctx, cancel := context.WithCancel(l.r.Context())
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(aliveEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.say(aliveEvery)
			}
		}
	})
	return func() {
		cancel()
		beats.Wait()
	}
}

func (l *lines) progress(done int64) { l.tell(done, progressEvery) }

func (l *lines) tell(done int64, pause time.Duration) {
	l.mu.Lock()
	l.done = done
	l.mu.Unlock()
	l.say(pause)
}

// say writes how much is done, unless it was said within the pause.
func (l *lines) say(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last) < pause {
		return
	}
	l.last = time.Now()
	l.write(adminapi.Line{Done: &l.done})
}

// suspects says that something is to be looked at again, which takes a while.
func (l *lines) suspects(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(adminapi.VerifyLine{Suspects: &n})
}

// write sends one line. A client that is gone ends the request's context, which ends the operation.
func (l *lines) write(line any) {
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
