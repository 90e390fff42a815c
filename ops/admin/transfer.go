package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// ExportDeadLetters answers POST /admin/v1/dead-letters/export.
func (s deadLetterHandlers) ExportDeadLetters(w http.ResponseWriter, r *http.Request) {
	request, err := web.Decode[adminapi.DeadLetterFilter](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	out := &exported{lines: newLines(w, r)}
	_, err = s.letters.Export(r.Context(), filterOf(request), out)
	switch {
	case err != nil && !out.begun:
		web.WriteProblem(w, r, err)
	case err != nil:
		_ = web.ProblemOf(r, err)   // for the log
		panic(http.ErrAbortHandler) // half an export must not look whole: the connection is cut
	case !out.begun:
		w.Header().Set("Content-Type", "application/jsonl")
		w.WriteHeader(http.StatusOK)
	}
}

// exported passes exported lines on, for as long as the client reads them.
type exported struct{ *lines }

func (e *exported) Write(p []byte) (int, error) {
	if !e.begun {
		e.w.Header().Set("Content-Type", "application/jsonl")
		e.begun = true
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(stallTimeout))
	return e.w.Write(p)
}

// ImportDeadLetters answers POST /admin/v1/dead-letters/import.
func (s deadLetterHandlers) ImportDeadLetters(
	w http.ResponseWriter, r *http.Request, params adminapi.ImportDeadLettersParams,
) {
	act, err := newAction(params.By, params.Reason, params.DryRun)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	control := http.NewResponseController(w)
	// The answer begins while the body is still read. A writer without a connection has no two ways to use.
	_ = control.EnableFullDuplex()
	body := &imported{body: r.Body, control: control}
	stream(w, r, func(ctx context.Context, progress func(int64)) (adminapi.Result, error) {
		result, err := s.letters.Import(ctx, body, act.change(progress))
		out := resultOf(act, result)
		for _, e := range result.Errors {
			addFailure(&out, fmt.Sprintf("line %d", e.Line), e.Code, e.Detail)
		}
		return out, err
	})
}

// imported reads a body of any length, as long as it keeps coming.
type imported struct {
	body    io.Reader
	control *http.ResponseController
}

func (i *imported) Read(p []byte) (int, error) {
	_ = i.control.SetReadDeadline(time.Now().Add(stallTimeout))
	return i.body.Read(p)
}
