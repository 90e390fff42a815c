package admin

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"example.com/twinbox/engine/deadletter"
	deadletters "example.com/twinbox/engine/deadletter/operate"
	"example.com/twinbox/frame/web"
	"example.com/twinbox/ops/admin/adminapi"
)

// deadLetterHandlers answer what is about the dead letters.
type deadLetterHandlers struct {
	Config
	letters *deadletters.Store
}

// QueryDeadLetters answers POST /admin/v1/dead-letters/query.
func (s deadLetterHandlers) QueryDeadLetters(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(ctx context.Context) (adminapi.DeadLetters, error) {
		request, err := web.Decode[adminapi.DeadLetterQuery](w, r)
		if err != nil {
			return adminapi.DeadLetters{}, err
		}
		filter := filterOf(request.Filter)
		limit, err := limitOf(request.Filter.Limit)
		if err != nil {
			return adminapi.DeadLetters{}, err
		}
		filter.After, filter.Limit = request.After, limit+1
		letters, err := s.letters.Summaries(ctx, filter)
		out := adminapi.DeadLetters{Items: []adminapi.DeadLetter{}, More: len(letters) > limit}
		for _, l := range letters[:min(len(letters), limit)] {
			out.Items = append(out.Items, summaryOf(l))
		}
		return out, err
	})
}

// GroupDeadLetters answers POST /admin/v1/dead-letters/groups.
func (s deadLetterHandlers) GroupDeadLetters(w http.ResponseWriter, r *http.Request) {
	answer(w, r, func(ctx context.Context) (adminapi.DeadLetterGroups, error) {
		request, err := web.Decode[adminapi.DeadLetterFilter](w, r)
		if err != nil {
			return adminapi.DeadLetterGroups{}, err
		}
		groups, err := s.letters.Groups(ctx, filterOf(request))
		out := adminapi.DeadLetterGroups{Items: []adminapi.DeadLetterGroup{}, More: len(groups) > maxLimit}
		for _, g := range groups[:min(len(groups), maxLimit)] {
			out.Items = append(out.Items, adminapi.DeadLetterGroup{
				Consumer: g.Consumer, Code: g.Code, Type: g.EventType, Count: g.Count, Keys: g.Keys,
				Oldest: g.Oldest, Newest: g.Newest, Error: g.Example, Example: g.ExampleID,
			})
		}
		return out, err
	})
}

// GetDeadLetter answers GET /admin/v1/dead-letters/{id}.
func (s deadLetterHandlers) GetDeadLetter(
	w http.ResponseWriter, r *http.Request, id adminapi.DeadLetterID, params adminapi.GetDeadLetterParams,
) {
	answer(w, r, func(ctx context.Context) (adminapi.DeadLetterDetail, error) {
		letter, history, err := s.letters.Get(ctx, id)
		return adminapi.DeadLetterDetail{
			Letter: letterOf(letter, value(params.Payload)), History: actionsOf(history),
		}, err
	})
}

// EditDeadLetter answers POST /admin/v1/dead-letters/{id}/edit.
func (s deadLetterHandlers) EditDeadLetter(w http.ResponseWriter, r *http.Request, id adminapi.DeadLetterID) {
	answerChange(w, r, func(ctx context.Context, act action, request adminapi.EditRequest) (adminapi.Result, error) {
		edit := deadletters.Edit{Payload: request.Payload}
		for _, h := range value(request.Headers) {
			edit.Set = append(edit.Set, headerFrom(h))
		}
		_, err := s.letters.Edit(ctx, id, edit, act.change(nil))
		return adminapi.Result{DryRun: act.dryRun, Count: 1}, err
	})
}

// DiscardDeadLetters answers POST /admin/v1/dead-letters/discard.
func (s deadLetterHandlers) DiscardDeadLetters(w http.ResponseWriter, r *http.Request) {
	streamChange(w, r, func(
		ctx context.Context, act action, request adminapi.DiscardRequest, progress func(int64),
	) (adminapi.Result, error) {
		result, err := s.letters.Discard(ctx, filterOf(request.Filter), act.change(progress))
		return resultOf(act, result), err
	})
}

func (a action) change(progress func(int64)) deadletters.Change {
	change := deadletters.Change{By: a.by, Reason: a.reason, DryRun: a.dryRun}
	if progress != nil {
		change.OnProgress = func(changed int) { progress(int64(changed)) }
	}
	return change
}

func resultOf(act action, r deadletters.Result) adminapi.Result {
	out := adminapi.Result{DryRun: act.dryRun, Count: int64(r.Changed), Failed: int64(r.Failed)}
	if act.dryRun {
		out.Count = int64(r.Matched)
	}
	return out
}

// summaryOf is a dead letter without what its record holds.
func summaryOf(s deadletters.Summary) adminapi.DeadLetter {
	return adminapi.DeadLetter{
		Id: s.ID, Consumer: s.Consumer, EventId: s.EventID, Type: s.EventType, Version: s.Version,
		Key: strings.ToValidUTF8(string(s.Key), "\uFFFD"), Topic: s.Topic, Partition: s.Partition, Offset: s.Offset,
		Class: s.Class, Code: s.Code, Error: s.Error, Attempts: s.Attempts, FirstFailedAt: s.FirstFailedAt,
		FailedAt: s.FailedAt, State: string(s.State), Holds: s.Holds, Replays: s.Replays, Bytes: s.Bytes,
		Outcome: optional(s.Outcome), SettledAt: s.SettledAt, EditedBy: optional(s.EditedBy), EditedAt: s.EditedAt,
	}
}

func letterOf(l deadletter.Letter, payload bool) adminapi.DeadLetter {
	out := summaryOf(deadletters.SummaryOf(l))
	if !payload {
		return out
	}
	out.Payload = notNull(l.Payload)
	out.NullKey, out.NullPayload = optional(l.Key == nil), optional(l.Payload == nil)
	if l.Edited != nil {
		out.EditedPayload = notNull(l.Edited.Payload)
	}
	headers := make([]adminapi.Header, len(l.Headers))
	for i, h := range l.Headers {
		headers[i] = headerOf(h)
	}
	out.Headers = &headers
	return out
}

// headerOf shows a header, whose name need not be text.
func headerOf(h deadletter.Header) adminapi.Header {
	out := adminapi.Header{Name: deadletter.Text(h.Name), Value: *notNull(h.Value), Null: optional(h.Value == nil)}
	if out.Name != h.Name {
		name := []byte(h.Name)
		out.NameBase64 = &name
	}
	return out
}

// notNull is empty for bytes that are null: what tells them apart stands beside it.
func notNull(b []byte) *[]byte {
	if b == nil {
		b = []byte{}
	}
	return &b
}

func headerFrom(h adminapi.Header) deadletter.Header {
	in := deadletter.Header{Name: h.Name, Value: h.Value}
	if h.NameBase64 != nil {
		in.Name = string(*h.NameBase64)
	}
	if value(h.Null) {
		in.Value = nil
	}
	return in
}

// optional leaves an empty value out.
func optional[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// refusals are the statuses of deadletter's stable codes; what is not among them is 422.
var refusals = map[string]int{
	deadletters.CodeNotFound:   http.StatusNotFound,
	deadletters.CodeNotWaiting: http.StatusConflict,
}

func letterError(service string, err error) *web.Error {
	refused, is := errors.AsType[*deadletters.Error](err)
	if !is {
		return nil
	}
	status, known := refusals[refused.Code]
	if !known {
		status = http.StatusUnprocessableEntity
	}
	detail := sentence(withService(service, refused.Detail))
	return &web.Error{Status: status, Code: web.Code(refused.Code), Detail: detail, Cause: err}
}

var letterID = regexp.MustCompile(`\bdead letter (\d+)\b`)

// withService writes the ids of dead letters in a text as people type them: each service numbers its own.
func withService(service, text string) string {
	return letterID.ReplaceAllString(text, "dead letter "+service+"/$1")
}

func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
