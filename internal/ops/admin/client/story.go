package client

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/ops/admin/adminapi"
)

const (
	// A user may have thousands of events.
	maxFollowed = 200
	askedAtOnce = 8
)

const noteCut = "There is more than is shown: ask for one of the related ids."

// Story asks the services about an id and about the ids that they name, and joins the answers in the order of time. A
// story without steps: no service knows the id. The error names services that did not answer; the story has the others'
// steps. Related are the ids that it did not follow.
func Story(
	ctx context.Context, services []*Service, id string, params adminapi.GetStoryParams,
) (adminapi.Story, error) {
	told := adminapi.Story{ID: id, Steps: []adminapi.StoryStep{}, Related: []string{}}
	failed := make([]error, len(services))
	asked, next := []string{}, []string{id}
	for len(next) > 0 {
		asked = append(asked, next...)
		for _, answer := range askAll(ctx, services, next, params, failed) {
			if answer.ID == id {
				if told.Kind == "" || told.Kind == adminapi.StoryKindKey { // another service may know the key
					told.Kind = cmp.Or(answer.Kind, told.Kind)
				}
				told.Note = cmp.Or(told.Note, answer.Note)
			}
			told.Steps = append(told.Steps, answer.Steps...)
			told.Related = append(told.Related, answer.Related...)
		}
		params = adminapi.GetStoryParams{} // the hints are about the first id
		slices.Sort(told.Related)
		told.Related = slices.DeleteFunc(slices.Compact(told.Related), func(related string) bool {
			return slices.Contains(asked, related)
		})
		followed := min(len(told.Related), maxFollowed-len(asked))
		next, told.Related = told.Related[:followed], told.Related[followed:]
	}
	if len(told.Related) > 0 {
		told.Note = noteCut
	}
	told.Steps = adminapi.InOrder(told.Steps)
	return told, errors.Join(failed...)
}

// askAll does not ask a service again that has failed once.
func askAll(
	ctx context.Context, services []*Service, ids []string, params adminapi.GetStoryParams, failed []error,
) []adminapi.Story {
	answers, errs := make([]adminapi.Story, len(ids)*len(services)), make([]error, len(ids)*len(services))
	var all errgroup.Group
	all.SetLimit(askedAtOnce)
	for i := range answers {
		id, s := ids[i/len(services)], services[i%len(services)]
		if failed[i%len(services)] != nil {
			continue
		}
		all.Go(func() error {
			answers[i], errs[i] = Call[adminapi.Story](ctx, s, Get("/admin/v1/story/"+url.PathEscape(id), params))
			return nil
		})
	}
	_ = all.Wait()
	for i, err := range errs {
		failed[i%len(services)] = cmp.Or(failed[i%len(services)], err)
	}
	return answers
}
