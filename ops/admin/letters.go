package admin

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"example.com/twinbox/engine/audit"
	deadletters "example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/inbox/replay"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// QueryDeadLetters answers POST /admin/v1/dead-letters/query.
func (s consumerHandlers) QueryDeadLetters(w http.ResponseWriter, r *http.Request) {
	answerTo(w, r, func(ctx context.Context, request adminapi.DeadLetterQuery) (out adminapi.DeadLetters, err error) {
		filter, limit := request.Filter, cmp.Or(request.Filter.Limit, defaultLimit)
		filter.After, filter.Limit = request.After, limit+1
		letters, err := s.letters.Summaries(ctx, filter)
		out.Items, out.More = page(letters, limit)
		return out, err
	})
}

// GroupDeadLetters answers POST /admin/v1/dead-letters/groups.
func (s consumerHandlers) GroupDeadLetters(w http.ResponseWriter, r *http.Request) {
	answerTo(w, r, func(ctx context.Context, filter deadletters.Filter) (out adminapi.DeadLetterGroups, err error) {
		groups, err := s.letters.Groups(ctx, filter)
		out.Items, out.More = page(groups, maxLimit)
		return out, err
	})
}

// GetDeadLetter answers GET /admin/v1/dead-letters/{id}.
func (s consumerHandlers) GetDeadLetter(
	w http.ResponseWriter, r *http.Request, id adminapi.DeadLetterID, params adminapi.GetDeadLetterParams,
) {
	answer(w, r, func(ctx context.Context) (out adminapi.DeadLetterDetail, err error) {
		out.Letter, out.History, err = s.letters.Get(ctx, id, params.Payload)
		return out, err
	})
}

// EditDeadLetter answers POST /admin/v1/dead-letters/{id}/edit.
func (s consumerHandlers) EditDeadLetter(w http.ResponseWriter, r *http.Request, id adminapi.DeadLetterID) {
	answerChange(w, r, func(
		ctx context.Context, change audit.Change, request adminapi.EditRequest,
	) (audit.Result, error) {
		edit := deadletters.Edit{Payload: request.Payload}
		for _, h := range request.Headers {
			edit.Set = append(edit.Set, h.Record())
		}
		_, err := s.letters.Edit(ctx, id, edit, change)
		return audit.Result{DryRun: change.DryRun, Count: 1}, err
	})
}

// DiscardDeadLetters answers POST /admin/v1/dead-letters/discard.
func (s consumerHandlers) DiscardDeadLetters(w http.ResponseWriter, r *http.Request) {
	streamChange(w, r, func(
		ctx context.Context, change audit.Change, request adminapi.DiscardRequest,
	) (audit.Result, error) {
		return s.letters.Discard(ctx, request.Filter, change)
	})
}

// A Consumer is one of the service's consumers, as far as its dead letters need it.
type Consumer struct {
	Name string
	// Replay handles the dead letters again that the filter picks of this consumer's.
	Replay func(ctx context.Context, f deadletters.Filter, o replay.Options) (replay.Report, error)
}

// ReplayDeadLetters answers POST /admin/v1/dead-letters/replay.
func (s consumerHandlers) ReplayDeadLetters(w http.ResponseWriter, r *http.Request) {
	streamChange(w, r, s.replay)
}

// checkAll wants everything to be asked for by its name: a filter that a caller forgot to fill picks nothing.
func checkAll(filter deadletters.Filter, all bool) error {
	switch {
	case all && filter.Selective():
		return invalid("all", "goes with no condition")
	case !all && !filter.Selective():
		return &deadletters.Error{Code: deadletters.CodeMissingFilter, Detail: `give a condition, or "all": true`}
	}
	return nil
}

// replay goes through the consumers one after the other, so that the rate is the whole's and a limit is, too.
func (s consumerHandlers) replay(
	ctx context.Context, change audit.Change, request adminapi.ReplayRequest,
) (audit.Result, error) {
	sum := audit.Result{DryRun: change.DryRun}
	filter := request.Filter
	if err := checkAll(filter, request.All); err != nil {
		return sum, err
	}
	left := filter.Limit // 0: no limit
	var done int64
	pace := replay.NewPace(request.Rate)
	for _, c := range s.Consumers {
		if filter.Consumer != "" && filter.Consumer != c.Name {
			continue
		}
		of := filter
		of.Consumer, of.Limit = c.Name, left
		report, err := c.Replay(ctx, of, replay.Options{
			By: change.By, Reason: change.Reason, DryRun: change.DryRun, Force: request.Force,
			AcceptGap: request.AcceptGap, Pace: pace,
			OnProgress: func(replay.Result) {
				done++
				change.Tell(done)
			},
		})
		sum.Count += int64(report.Applied + report.Duplicate + report.Stale + report.Would)
		sum.Failed += int64(report.Failed + report.Refused)
		for _, p := range report.Problems {
			sum.Tell(strconv.FormatInt(p.ID, 10), p.Code, withService(s.Service, p.Error))
		}
		if err != nil {
			return sum, err
		}
		if filter.Limit == 0 {
			continue
		}
		if left -= report.Matched; left <= 0 {
			break
		}
	}
	return sum, nil
}

// ExportDeadLetters answers POST /admin/v1/dead-letters/export.
func (s consumerHandlers) ExportDeadLetters(w http.ResponseWriter, r *http.Request) {
	request, err := web.Decode[deadletters.Filter](w, r)
	if err != nil {
		web.WriteProblem(w, r, err)
		return
	}
	out := newLines(w, r)
	_, err = s.letters.Export(r.Context(), request, out)
	switch {
	case err != nil && !out.begun:
		web.WriteProblem(w, r, err)
	case err != nil:
		_ = web.ProblemOf(r, err)   // for the log
		panic(http.ErrAbortHandler) // half an export must not look whole: the connection is cut
	}
	out.begin() // also where there was nothing to export
}

// ImportDeadLetters answers POST /admin/v1/dead-letters/import.
func (s consumerHandlers) ImportDeadLetters(
	w http.ResponseWriter, r *http.Request, params adminapi.ImportDeadLettersParams,
) {
	control := http.NewResponseController(w)
	// The answer begins while the body is still read. A writer without a connection has no two ways to use.
	_ = control.EnableFullDuplex()
	body := &imported{body: r.Body, control: control}
	stream(w, r, params, func(ctx context.Context, change audit.Change) (audit.Result, error) {
		return s.letters.Import(ctx, body, change)
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
