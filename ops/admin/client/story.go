package client

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/steps"
)

const (
	// maxFollowed is how many ids a story follows: a user may have thousands of events.
	maxFollowed = 200
	askedAtOnce = 8
)

// noteCut is the note of a story that goes on.
const noteCut = "There is more than is shown: ask for one of the related ids."

// Story asks the services what they know of an id, and of the ids that they name, and joins the answers in the order of
// time. A story without steps: none of them knows the id. Services that did not answer are an error beside what the
// others know. Related are the ids that were not followed.
func Story(
	ctx context.Context, services []*Service, id string, params adminapi.GetStoryParams,
) (adminapi.Story, error) {
	told := adminapi.Story{Id: id, Steps: []adminapi.StoryStep{}, Related: []string{}}
	failed := make(map[*Service]error)
	asked, next := map[string]bool{id: true}, []string{id}
	for len(next) > 0 {
		var found []string
		for _, answer := range askAll(ctx, services, next, params, failed) {
			if answer.Id == id {
				if told.Kind == "" || told.Kind == adminapi.StoryKindKey { // another service may know what the key stands for
					told.Kind = cmp.Or(answer.Kind, told.Kind)
				}
				told.Note = cmp.Or(told.Note, answer.Note)
			}
			told.Steps = append(told.Steps, answer.Steps...)
			found = append(found, answer.Related...)
		}
		params, next = adminapi.GetStoryParams{}, nil // the hints are about the first id
		slices.Sort(found)
		for _, related := range slices.Compact(found) {
			switch {
			case asked[related]:
			case len(asked) < maxFollowed:
				asked[related] = true
				next = append(next, related)
			case !slices.Contains(told.Related, related):
				told.Related = append(told.Related, related)
				told.Note = noteCut
			}
		}
	}
	told.Steps = steps.InOrder(told.Steps)
	var problems []error
	for _, s := range services {
		problems = append(problems, failed[s])
	}
	return told, errors.Join(problems...)
}

// askAll asks every service about every id. One that has failed once is not asked again.
func askAll(
	ctx context.Context, services []*Service, ids []string, params adminapi.GetStoryParams, failed map[*Service]error,
) []adminapi.Story {
	type question struct {
		service *Service
		id      string
	}
	var questions []question
	for _, id := range ids {
		for _, s := range services {
			if failed[s] == nil {
				questions = append(questions, question{s, id})
			}
		}
	}
	answers, errs := make([]adminapi.Story, len(questions)), make([]error, len(questions))
	var all errgroup.Group
	all.SetLimit(askedAtOnce)
	for i, q := range questions {
		all.Go(func() error {
			answers[i], errs[i] = Call[adminapi.Story](ctx, q.service,
				Get("/admin/v1/story/"+url.PathEscape(q.id), params))
			return nil
		})
	}
	_ = all.Wait()
	for i, err := range errs {
		if err != nil && failed[questions[i].service] == nil {
			failed[questions[i].service] = err
		}
	}
	return answers
}
