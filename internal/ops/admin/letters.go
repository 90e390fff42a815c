package admin

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"example.com/twinbox/internal/audit"
	deadletters "example.com/twinbox/internal/inbox/deadletter/operate"
	"example.com/twinbox/internal/inbox/replay"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/web"
)

func (s consumerHandlers) deadLetters(
	ctx context.Context, asked adminapi.DeadLetterQuery,
) (out adminapi.DeadLetters, err error) {
	out.Items, out.More, err = page(asked.Filter.Limit, func(limit int) ([]adminapi.DeadLetter, error) {
		asked.Filter.After, asked.Filter.Limit = asked.After, limit
		return s.letters.Summaries(ctx, asked.Filter)
	})
	return out, err
}

func (s consumerHandlers) groups(
	ctx context.Context, asked deadletters.Filter,
) (out adminapi.DeadLetterGroups, err error) {
	out.Items, out.More, err = page(maxLimit, func(int) ([]adminapi.DeadLetterGroup, error) {
		return s.letters.Groups(ctx, asked)
	})
	return out, err
}

func (s consumerHandlers) deadLetter(
	ctx context.Context, asked adminapi.GetDeadLetterParams,
) (out adminapi.DeadLetterDetail, err error) {
	id, err := idOf(ctx)
	if err == nil {
		out.Letter, out.History, err = s.letters.Get(ctx, id, asked.Payload)
	}
	return out, err
}

func (s consumerHandlers) edit(
	ctx context.Context, change audit.Change, asked adminapi.EditRequest,
) (audit.Result, error) {
	edit := deadletters.Edit{Payload: asked.Payload}
	for _, h := range asked.Headers {
		edit.Set = append(edit.Set, h.Record())
	}
	id, err := idOf(ctx)
	if err == nil {
		_, err = s.letters.Edit(ctx, id, edit, change)
	}
	return audit.Result{DryRun: change.DryRun, Count: 1}, err
}

func (s consumerHandlers) discard(
	ctx context.Context, change audit.Change, asked adminapi.DiscardRequest,
) (audit.Result, error) {
	return s.letters.Discard(ctx, asked.Filter, change)
}

// A Consumer is one of the service's consumers, as far as its dead letters need it.
type Consumer struct {
	Name string
	// Replay handles the dead letters again that the filter picks of this consumer's.
	Replay func(ctx context.Context, f deadletters.Filter, o replay.Options) (replay.Report, error)
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
	ctx context.Context, change audit.Change, asked adminapi.ReplayRequest,
) (audit.Result, error) {
	sum := audit.Result{DryRun: change.DryRun}
	filter := asked.Filter
	if err := checkAll(filter, asked.All); err != nil {
		return sum, err
	}
	left := filter.Limit // 0: no limit
	var done int64
	pace := replay.NewPace(asked.Rate)
	for _, c := range s.Consumers {
		if filter.Consumer != "" && filter.Consumer != c.Name {
			continue
		}
		of := filter
		of.Consumer, of.Limit = c.Name, left
		report, err := c.Replay(ctx, of, replay.Options{
			By: change.By, Reason: change.Reason, DryRun: change.DryRun, Force: asked.Force,
			AcceptGap: asked.AcceptGap, Pace: pace,
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

// export answers with dead letters, whole, one in each line.
func (s consumerHandlers) export(c call) {
	asked, err := decode[deadletters.Filter](c)
	if err != nil {
		web.WriteProblem(c.w, c.r, err)
		return
	}
	out := newLines(c)
	_, err = s.letters.Export(c.r.Context(), asked, out)
	switch {
	case err != nil && !out.begun:
		web.WriteProblem(c.w, c.r, err)
	case err != nil:
		_ = web.ProblemOf(c.r, err) // for the log
		panic(http.ErrAbortHandler) // half an export must not look whole: the connection is cut
	}
	out.begin() // also where there was nothing to export
}

func (s consumerHandlers) importAll(c call) {
	control := http.NewResponseController(c.w)
	// The answer begins while the body is still read. A writer without a connection has no two ways to use.
	_ = control.EnableFullDuplex()
	body := &imported{body: c.r.Body, control: control}
	longChange(func(ctx context.Context, change audit.Change, _ adminapi.ImportDeadLettersParams) (audit.Result, error) {
		return s.letters.Import(ctx, body, change)
	})(c)
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
