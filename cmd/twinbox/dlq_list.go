package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// DLQList is "twinbox dlq list".
type DLQList struct {
	Operator     `embed:""`
	Watch        `embed:""`
	LetterFilter `embed:""`

	Each  bool   `help:"One line per dead letter instead of per error." env:"-"`
	State string `help:"In this state: waiting, replayed, discarded or all." enum:"waiting,replayed,discarded,all" default:"waiting" env:"-"`
	Limit *int   `help:"With --each: how many of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
	All   bool   `help:"With --each: all of them, however many." env:"-"`
	After string `help:"With --each: those after this one, such as customer/100; the next page." env:"-" placeholder:"ID"`
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
	var after int64
	if c.After != "" {
		picked, err := parseIDs([]string{c.After}, services)
		if err != nil {
			return err
		}
		services = picked.of(services)
		after = picked.ids[services[0].Name][0]
	}
	return c.repeat(ctx, to, func() error {
		if c.Each {
			return c.each(ctx, to, services, after)
		}
		return c.groups(ctx, to, services)
	})
}

func (c *DLQList) check() error {
	switch {
	case !c.Each && (c.Limit != nil || c.All || c.After != ""):
		return usage("--limit, --all and --after go with --each: errors are not listed in pages")
	case c.All && c.Limit != nil:
		return usage("--all goes with no --limit")
	}
	return cmp.Or(c.LetterFilter.check(), checkLimit(c.Limit, "--all lists every one"))
}

// group is a group with the service it is of, and its example as other commands take it.
type group struct {
	Service string `json:"service"`
	adminapi.DeadLetterGroup
	Example string `json:"example"` // in place of the embedded one
}

func (c *DLQList) groups(ctx context.Context, to streams, services []*client.Service) error {
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.DeadLetterGroups, error) {
		return client.Call[adminapi.DeadLetterGroups](ctx, s,
			client.Post("/admin/v1/dead-letters/groups", c.body(c.State, nil)))
	})
	if len(answers) == 0 {
		return err
	}
	groups := []group{}
	t := table{
		columns: []string{"CONSUMER", "CODE", "TYPE", "COUNT", "KEYS", "LAST", "LATEST", "ERROR"},
		prose:   []string{"ERROR"}, omit: []string{"KEYS", "TYPE", "LAST", "ERROR"},
	}
	for _, a := range answers {
		if a.value.More {
			to.warn(a.service.Name + " has more and smaller groups; pick some of them with --consumer or --code")
		}
		for _, g := range a.value.Items {
			example := letterID(a.service.Name, g.Example)
			groups = append(groups, group{a.service.Name, g, example})
			t.add(g.Consumer, g.Code, g.Type, g.Count, g.Keys, moment(g.Newest), example, g.Error)
		}
	}
	if c.json() {
		return both(writeJSON(to.out, map[string]any{"items": groups}), err)
	}
	if len(groups) == 0 {
		return both(to.say("No dead letters."), err)
	}
	return both(c.show(to, &t), err)
}

// letter is a dead letter with the id that names it in every service.
type letter struct {
	Ref string `json:"ref"`
	adminapi.DeadLetter
}

func (c *DLQList) each(ctx context.Context, to streams, services []*client.Service, after int64) error {
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.DeadLetters, error) {
		return c.pages(ctx, s, after)
	})
	if len(answers) == 0 {
		return err
	}
	letters, next := []letter{}, []string{}
	t := table{
		columns: []string{"ID", "STATE", "CONSUMER", "TYPE", "KEY", "VERSION", "CODE", "TRIES", "FAILED", "ERROR"},
		prose:   []string{"ERROR"},
		omit:    []string{"TRIES", "VERSION", "TYPE", "FAILED", "CONSUMER", "ERROR", "CODE"},
	}
	for _, a := range answers {
		for _, l := range a.value.Items {
			ref := letterID(a.service.Name, l.Id)
			letters = append(letters, letter{ref, l})
			t.add(ref, l.State, l.Consumer, l.Type, l.Key, l.Version, l.Code, l.Attempts, moment(l.FailedAt), l.Error)
		}
		if a.value.More {
			next = append(next, letters[len(letters)-1].Ref)
		}
	}
	if c.State == "waiting" { // the heading of all of them
		t.without("STATE")
	}
	if c.json() {
		return both(writeJSON(to.out, map[string]any{"items": letters, "next": next}), err)
	}
	if len(letters) == 0 {
		return both(to.say("No dead letters."), err)
	}
	err = both(c.show(to, &t), err)
	if len(next) > 0 {
		to.warn(fmt.Sprintf("there are more: go on with --after %s, or list them with --all",
			strings.Join(next, " and with --after ")))
	}
	return err
}

// pages is the one page that is asked for, or all there are.
func (c *DLQList) pages(ctx context.Context, s *client.Service, after int64) (all adminapi.DeadLetters, err error) {
	query := adminapi.DeadLetterQuery{Filter: c.body(c.State, nil), After: after}
	limit := maxLimit
	if !c.All {
		limit = valueOr(c.Limit, defaultLimit)
	}
	query.Filter.Limit = &limit
	for {
		page, err := client.Call[adminapi.DeadLetters](ctx, s, client.Post("/admin/v1/dead-letters/query", query))
		if err != nil {
			return all, err
		}
		all.Items, all.More = append(all.Items, page.Items...), page.More
		if !c.All || !page.More {
			return all, nil
		}
		query.After = page.Items[len(page.Items)-1].Id
	}
}

func valueOr(given *int, otherwise int) int {
	if given == nil {
		return otherwise
	}
	return *given
}
