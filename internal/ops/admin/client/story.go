package client

import (
	"cmp"
	"context"
	"errors"
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
func Story(ctx context.Context, services []*Service, first adminapi.StoryQuery) (adminapi.Story, error) {
	told := adminapi.Story{ID: first.ID, Steps: []adminapi.StoryStep{}, Related: []string{}}
	var failed []error
	services = slices.Clone(services)
	asked := []string{}
	for next := []adminapi.StoryQuery{first}; len(next) > 0; {
		for _, query := range next {
			asked = append(asked, query.ID)
		}
		for _, a := range Ask(services, func(s *Service) ([]adminapi.Story, error) { return askStories(ctx, s, next) }) {
			if a.Err != nil { // it is not asked again
				failed = append(failed, a.Err)
				services = slices.DeleteFunc(services, func(s *Service) bool { return s.Name == a.Service })
			}
			for _, answer := range a.Value {
				if answer.ID == first.ID {
					if told.Kind == "" || told.Kind == adminapi.StoryKindKey { // another service may know the key
						told.Kind = cmp.Or(answer.Kind, told.Kind)
					}
					told.Note = cmp.Or(told.Note, answer.Note)
				}
				told.Steps = append(told.Steps, answer.Steps...)
				told.Related = append(told.Related, answer.Related...)
			}
		}
		slices.Sort(told.Related)
		told.Related = slices.DeleteFunc(slices.Compact(told.Related), func(related string) bool {
			return slices.Contains(asked, related)
		})
		next = nil
		for len(told.Related) > 0 && len(asked)+len(next) < maxFollowed {
			next = append(next, adminapi.StoryQuery{ID: told.Related[0]})
			told.Related = told.Related[1:]
		}
	}
	if len(told.Related) > 0 {
		told.Note = noteCut
	}
	told.Steps = adminapi.InOrder(told.Steps)
	return told, errors.Join(failed...)
}

// askStories also returns the answers before an error.
func askStories(ctx context.Context, s *Service, queries []adminapi.StoryQuery) ([]adminapi.Story, error) {
	stories := make([]adminapi.Story, len(queries))
	var all errgroup.Group
	all.SetLimit(askedAtOnce)
	for i, query := range queries {
		all.Go(func() (err error) {
			stories[i], err = Call[adminapi.Story](ctx, s, Post("/admin/v1/story", query))
			return err
		})
	}
	err := all.Wait()
	return stories, err
}
