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
	askedAtOnce = 4 // of one service
)

const noteCut = "There is more than is shown: ask for one of the related ids."

// Story asks the services about an id and about the ids that they name, and joins the answers in the order of time.
// Without steps, no service knows the id. The error names services that did not answer; the story has the others'
// steps. Related are the ids that it did not follow.
func Story(
	ctx context.Context, services []*Service, id string, params adminapi.GetStoryParams,
) (adminapi.Story, error) {
	told := adminapi.Story{ID: id, Steps: []adminapi.StoryStep{}, Related: []string{}}
	var failed []error
	services = slices.Clone(services)
	asked, next := []string{}, []string{id}
	for len(next) > 0 {
		asked = append(asked, next...)
		for _, a := range Ask(services, func(s *Service) ([]adminapi.Story, error) {
			return askStories(ctx, s, next, params)
		}) {
			if a.Err != nil { // it is not asked again
				failed = append(failed, a.Err)
				services = slices.DeleteFunc(services, func(s *Service) bool { return s.Name == a.Service })
			}
			for _, answer := range a.Value {
				if answer.ID == id {
					if told.Kind == "" || told.Kind == adminapi.StoryKindKey { // another service may know the key
						told.Kind = cmp.Or(answer.Kind, told.Kind)
					}
					told.Note = cmp.Or(told.Note, answer.Note)
				}
				told.Steps = append(told.Steps, answer.Steps...)
				told.Related = append(told.Related, answer.Related...)
			}
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

// askStories also returns the answers before an error.
func askStories(
	ctx context.Context, s *Service, ids []string, params adminapi.GetStoryParams,
) ([]adminapi.Story, error) {
	stories := make([]adminapi.Story, len(ids))
	var all errgroup.Group
	all.SetLimit(askedAtOnce)
	for i, id := range ids {
		all.Go(func() (err error) {
			stories[i], err = Call[adminapi.Story](ctx, s, Get("/admin/v1/story/"+url.PathEscape(id), params))
			return err
		})
	}
	err := all.Wait()
	return stories, err
}
