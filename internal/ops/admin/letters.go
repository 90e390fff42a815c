package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/twinbox/internal/audit"
	"example.com/twinbox/internal/inbox"
	deadletters "example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/ops/admin/adminapi"
)

func (s handlers) deadLetters(
	ctx context.Context, asked deadletters.Filter,
) (out adminapi.DeadLetters, err error) {
	var more bool
	out.Items, more, err = page(asked.Limit, func(limit int) ([]adminapi.DeadLetter, error) {
		asked.Limit = limit
		return s.letters.Summaries(ctx, asked)
	})
	if more {
		out.Next = out.Items[len(out.Items)-1].ID
	}
	return out, err
}

func (s handlers) groups(
	ctx context.Context, asked deadletters.Filter,
) (out adminapi.DeadLetterGroups, err error) {
	out.Items, out.More, err = page(maxLimit, func(int) ([]adminapi.DeadLetterGroup, error) {
		return s.letters.Groups(ctx, asked)
	})
	return out, err
}

func (s handlers) deadLetter(
	ctx context.Context, asked adminapi.DeadLetterRequest,
) (out adminapi.DeadLetterDetail, err error) {
	out.Letter, out.History, err = s.letters.Get(ctx, asked.ID, asked.Payload)
	return out, err
}

func (s handlers) edit(
	ctx context.Context, change audit.Change, asked adminapi.EditRequest,
) (audit.Result, error) {
	edit := deadletters.Edit{Set: asked.Headers, Payload: asked.Payload, EditedAt: asked.EditedAt}
	_, err := s.letters.Edit(ctx, asked.ID, edit, change)
	return audit.Result{DryRun: change.DryRun, Count: 1}, err
}

func (s handlers) discard(
	ctx context.Context, change audit.Change, asked adminapi.DiscardRequest,
) (audit.Result, error) {
	settled, err := s.notWaiting(ctx, asked.Filter.IDs)
	if err != nil {
		return audit.Result{}, err
	}
	result, err := s.letters.Discard(ctx, asked.Filter, change)
	return withFailures(noted(result, ""), settled), err
}

// notWaiting has those of the ids that a change cannot pick.
func (s handlers) notWaiting(ctx context.Context, ids []int64) (failed []audit.Failure, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := s.letters.Summaries(ctx, deadletters.Filter{IDs: ids, Limit: len(ids)})
	for _, id := range ids {
		i := slices.IndexFunc(found, func(l deadletters.Letter) bool { return l.ID == id })
		failure := audit.Failure{
			Subject: strconv.FormatInt(id, 10), Code: deadletters.CodeNotFound, Detail: "there is no such dead letter",
		}
		switch {
		case i < 0:
		case found[i].State == deadletters.Waiting:
			continue
		default:
			failure.Code, failure.Detail = deadletters.CodeNotWaiting, "it is "+string(found[i].State)+" already"
		}
		failed = append(failed, failure)
	}
	return failed, err
}

func withFailures(result audit.Result, failed []audit.Failure) audit.Result {
	for _, f := range failed {
		result.Fail(f.Subject, f.Code, f.Detail)
	}
	return result
}

const (
	noteReplayDryRun = "Payloads and contracts were checked. The order of the keys and the handlers were not tried: " +
		"a dead letter may still fail or be refused."
	noteFollow   = "Events parked behind them follow automatically within 5 seconds."
	noteNotTried = "%d more wait. They were not tried: they stand behind one that failed, came just now, or belong to a " +
		"consumer that this service does not have."
)

func noted(result audit.Result, dryRun string) audit.Result {
	switch {
	case result.Count == 0:
	case result.DryRun:
		result.Note = dryRun
	default:
		result.Note = noteFollow
	}
	return result
}

type Consumer struct {
	Name, Topic string
	Replay      func(ctx context.Context, f deadletters.Filter, o inbox.Options) error
}

// replay runs the consumers in turn: rate and limit are for all together.
func (s handlers) replay(
	ctx context.Context, change audit.Change, asked adminapi.ReplayRequest,
) (audit.Result, error) {
	sum := audit.Result{DryRun: change.DryRun}
	if !asked.All && !asked.Filter.Selective() { // a caller may have forgotten to fill the filter
		return sum, &deadletters.Error{Code: deadletters.CodeMissingFilter, Detail: `give a condition, or "all": true`}
	}
	asked.Filter.State = cmp.Or(asked.Filter.State, deadletters.Waiting)
	settled, err := s.notWaiting(ctx, asked.Filter.IDs)
	if err != nil {
		return sum, err
	}
	total, err := s.letters.Count(ctx, asked.Filter)
	if err != nil {
		return sum, err
	}
	o := inbox.Options{
		Change: change, Force: asked.Force, AcceptGap: asked.AcceptGap, PerSecond: asked.Rate,
		OnResult: func(one inbox.Result) {
			if one.Code != "" {
				sum.Fail(strconv.FormatInt(one.ID, 10), one.Code, withService(s.Service, one.Error))
			} else {
				sum.Count++
			}
			change.ReportProgress(sum.Count, total)
		},
	}
	for _, c := range s.Consumers {
		of, tried := asked.Filter, int(sum.Count+sum.Failed)
		isOther := of.Consumer != "" && of.Consumer != c.Name
		if isOther || of.Limit > 0 && of.Limit <= tried {
			continue
		}
		of.Consumer = c.Name
		of.Limit = max(0, of.Limit-tried)
		if err := c.Replay(ctx, of, o); err != nil {
			return sum, err
		}
	}
	if total > 0 && sum.Count+sum.Failed == 0 {
		if err := s.failOrphans(ctx, asked.Filter, &sum); err != nil {
			return sum, err
		}
	}
	result := noted(sum, noteReplayDryRun)
	if result.DryRun || asked.Filter.Limit > 0 {
		return withFailures(result, settled), nil
	}
	left, err := s.letters.Count(ctx, asked.Filter)
	if left > sum.Failed {
		result.Note = strings.TrimSpace(fmt.Sprintf(noteNotTried, left-sum.Failed) + " " + result.Note)
	}
	return withFailures(result, settled), err
}

// failOrphans adds the first of the dead letters whose consumer was renamed or removed.
func (s handlers) failOrphans(ctx context.Context, of deadletters.Filter, sum *audit.Result) error {
	found, err := s.letters.Summaries(ctx, of)
	for _, l := range found {
		if !slices.Contains(s.consumerNames(), l.Consumer) {
			sum.Fail(strconv.FormatInt(l.ID, 10), string(errNoConsumer.Code), "this service has no consumer "+l.Consumer)
		}
	}
	return err
}
