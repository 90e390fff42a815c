package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/web"
)

const (
	// stallTimeout is how long a client may take no line.
	stallTimeout = 30 * time.Second
	// progressEvery keeps an operation of a million steps from writing a million lines.
	progressEvery = 200 * time.Millisecond
)

// lines is an answer that is written while the operation runs. The first line makes it a 200; an operation that fails
// before that is answered like any other.
type lines struct {
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	encoder *json.Encoder
	last    time.Time
	begun   bool
}

// newLines takes the request out of the listener's read timeout: when that runs out behind a body that was read,
// net/http ends the request's context.
func newLines(w http.ResponseWriter, r *http.Request) *lines {
	l := &lines{w: w, r: r, control: http.NewResponseController(w), encoder: json.NewEncoder(w), last: time.Now()}
	_ = l.control.SetReadDeadline(time.Time{}) // a writer without a connection has no deadline either
	return l
}

// stream runs a long operation. It tells progress how much is done; an error it returns ends the stream as a problem.
func stream(
	w http.ResponseWriter, r *http.Request,
	operation func(ctx context.Context, progress func(done int64)) (adminapi.Result, error),
) {
	l := newLines(w, r)
	result, err := operation(r.Context(), l.progress)
	if err != nil && result.Count > 0 && !result.DryRun {
		l.write(adminapi.Line{Done: &result.Count}) // it stays done, so it has to be said
	}
	switch {
	case err == nil:
		l.write(adminapi.Line{Result: &result})
	case !l.begun:
		web.WriteProblem(w, r, err)
	default:
		l.write(map[string]web.Problem{"problem": web.ProblemOf(r, err)})
	}
}

func (l *lines) progress(done int64) {
	if time.Since(l.last) < progressEvery {
		return
	}
	l.last = time.Now()
	l.write(adminapi.Line{Done: &done})
}

// write sends one line. A client that is gone ends the request's context, which ends the operation.
func (l *lines) write(line any) {
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/jsonl")
		l.begun = true
	}
	_ = l.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	_ = l.encoder.Encode(line)
	_ = l.control.Flush()
}
