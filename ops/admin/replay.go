package admin

import (
	"context"
	"net/http"
	"strconv"

	deadletters "example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/engine/inbox/replay"
	"example.com/twinbox/ops/admin/adminapi"
)

// A Consumer is one of the service's consumers, as far as its dead letters need it.
type Consumer struct {
	Name string
	// Replay handles the dead letters again that the filter picks of this consumer's.
	Replay func(ctx context.Context, f deadletters.Filter, o replay.Options) (replay.Report, error)
}

// ReplayDeadLetters answers POST /admin/v1/dead-letters/replay.
func (s deadLetterHandlers) ReplayDeadLetters(w http.ResponseWriter, r *http.Request) {
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
func (s deadLetterHandlers) replay(
	ctx context.Context, act action, request adminapi.ReplayRequest, progress func(int64),
) (adminapi.Result, error) {
	sum := adminapi.Result{DryRun: act.dryRun}
	filter := filterOf(request.Filter)
	if err := checkAll(filter, value(request.All)); err != nil {
		return sum, err
	}
	left := filter.Limit // 0: no limit
	var done int64
	pace := replay.NewPace(value(request.Rate))
	for _, c := range s.Consumers {
		if filter.Consumer != "" && filter.Consumer != c.Name {
			continue
		}
		of := filter
		of.Consumer, of.Limit = c.Name, 0
		report, err := c.Replay(ctx, of, replay.Options{
			By: act.by, Reason: act.reason, DryRun: act.dryRun, Force: value(request.Force),
			AcceptGap: value(request.AcceptGap), Pace: pace, Limit: left,
			OnProgress: func(replay.Result) {
				done++
				progress(done)
			},
		})
		s.addReport(&sum, report)
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

func (s deadLetterHandlers) addReport(sum *adminapi.Result, r replay.Report) {
	sum.Count += int64(r.Applied + r.Duplicate + r.Stale + r.Would)
	sum.Failed += int64(r.Failed + r.Refused)
	for _, p := range r.Problems {
		addFailure(sum, strconv.FormatInt(p.ID, 10), p.Code, withService(s.Service, p.Error))
	}
}

const maxFailures = 100

func addFailure(sum *adminapi.Result, subject, code, detail string) {
	failures := value(sum.Errors)
	if len(failures) < maxFailures {
		failures = append(failures, adminapi.Failure{Subject: subject, Code: code, Detail: detail})
		sum.Errors = &failures
	}
}
