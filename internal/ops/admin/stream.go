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
	stallTimeout  = 30 * time.Second // for a client to read a line
	progressEvery = 200 * time.Millisecond
)

// The first line makes the answer a 200. An operation that fails before it gets its own status.
type lines struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	latest  atomic.Pointer[adminapi.Line]
	begun   bool
}

func longChange[R any](operation changing[R]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked, err := decode[R](w, r)
		if err != nil {
			web.WriteProblem(w, r, err)
			return
		}
		l := &lines{w: w, r: r, control: http.NewResponseController(w)}
		change := changeOf(asked)
		change.Progress = func(done, total int64) { l.latest.Store(&adminapi.Line{Done: &done, Total: total}) }
		change.Progress(0, 0)
		stop := l.keepReporting()
		defer stop()
		result, err := operation(r.Context(), change, asked)
		stop()
		if err == nil {
			l.write(adminapi.Line{Result: &result})
			return
		}
		if result.Count > 0 && !result.DryRun {
			l.write(adminapi.Line{Done: &result.Count}) // it stays done
		}
		if !l.begun {
			web.WriteProblem(w, r, err)
			return
		}
		l.write(map[string]web.Problem{"problem": web.ProblemOf(r, err)})
	}
}

// keepReporting writes the latest progress, also of a silent operation.
func (l *lines) keepReporting() (stop func()) {
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
			l.write(l.latest.Load())
		}
	})
	return func() {
		cancel()
		beats.Wait()
	}
}

// A lost client ends the request's context, which ends the operation.
func (l *lines) write(line any) {
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/jsonl")
		l.begun = true
	}
	_ = l.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	_ = json.NewEncoder(l.w).Encode(line)
	_ = l.control.Flush()
}
