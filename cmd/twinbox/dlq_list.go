package main

import (
	"context"
	"net/http"

	"example.com/twinbox/internal/admin/adminapi"
	"example.com/twinbox/internal/admin/client"
)

// DLQList is "twinbox dlq list".
type DLQList struct {
	Operator     `embed:""`
	LetterFilter `embed:""`

	Each  bool   `help:"One line per dead letter instead of per error." env:"-"`
	State string `help:"In this state: waiting, replayed, discarded or all." enum:"waiting,replayed,discarded,all" default:"waiting" env:"-"`
	Limit int    `help:"With --each: how many of each service, 1 to 1000." short:"n" default:"100" env:"-"`
	After int64  `help:"With --each: those after this id of the service; the next page." env:"-" placeholder:"ID"`
}

// Run asks every service.
func (c *DLQList) Run(ctx context.Context, to streams) error {
	if err := c.check(); err != nil {
		return err
	}
	services, err := c.connect()
	if err != nil {
		return err
	}
	if c.After != 0 && len(services) > 1 {
		return usage("--after is an id of one service: give --service too")
	}
	if c.Each {
		return c.each(ctx, to, services)
	}
	return c.groups(ctx, to, services)
}

// group is a group with the service it is of.
type group struct {
	Service string `json:"service"`
	adminapi.DeadLetterGroup
}

func (c *DLQList) groups(ctx context.Context, to streams, services []*client.Service) error {
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.DeadLetterGroups, error) {
		return client.Call[adminapi.DeadLetterGroups](s, func(api *adminapi.Client) (*http.Response, error) {
			return api.GroupDeadLetters(ctx, c.body(c.State, nil))
		})
	})
	if len(answers) == 0 {
		return err
	}
	groups := []group{}
	t := table{columns: []string{"CONSUMER", "CODE", "TYPE", "LETTERS", "KEYS", "LAST", "LATEST", "ERROR"}}
	for _, a := range answers {
		for _, g := range a.value.Items {
			groups = append(groups, group{a.service.Name, g})
			t.add(g.Consumer, g.Code, g.Type, g.Count, g.Keys, moment(g.Newest), letterID(a.service.Name, g.Example), g.Error)
		}
	}
	if c.JSON {
		return both(writeJSON(to.out, map[string]any{"items": groups}), err)
	}
	if len(groups) == 0 {
		return both(to.say("No dead letters."), err)
	}
	return both(t.write(to.out, to.width()), err)
}

// letter is a dead letter with the id that names it in every service.
type letter struct {
	Ref string `json:"ref"`
	adminapi.DeadLetter
}

func (c *DLQList) each(ctx context.Context, to streams, services []*client.Service) error {
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.DeadLetters, error) {
		query := adminapi.DeadLetterQuery{Filter: c.body(c.State, nil), After: c.After}
		query.Filter.Limit = &c.Limit
		return client.Call[adminapi.DeadLetters](s, func(api *adminapi.Client) (*http.Response, error) {
			return api.QueryDeadLetters(ctx, query)
		})
	})
	if len(answers) == 0 {
		return err
	}
	letters := []letter{}
	t := table{columns: []string{"ID", "CONSUMER", "TYPE", "KEY", "VERSION", "CODE", "TRIES", "FAILED", "ERROR"}}
	for _, a := range answers {
		for _, l := range a.value.Items {
			letters = append(letters, letter{letterID(a.service.Name, l.Id), l})
			t.add(letterID(a.service.Name, l.Id), l.Consumer, l.Type, l.Key, l.Version, l.Code, l.Attempts,
				moment(l.FailedAt), l.Error)
		}
	}
	if c.JSON {
		return both(writeJSON(to.out, map[string]any{"items": letters}), err)
	}
	if len(letters) == 0 {
		return both(to.say("No dead letters."), err)
	}
	return both(t.write(to.out, to.width()), err)
}
