package main

import (
	"context"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// DLQReplay is "twinbox dlq replay".
type DLQReplay struct {
	Operator     `embed:""`
	Change       `embed:""`
	LetterFilter `embed:""`

	IDs   []string `arg:"" optional:"" name:"id" help:"Dead letters, such as customer/17."`
	All   bool     `help:"All that wait." env:"-"`
	Limit *int     `help:"This many of each service at most. Default: all that are picked." env:"-" placeholder:"N"`
	Rate  *float64 `help:"This many per second at most. Default: as fast as they go." env:"-" placeholder:"N"`
	Gap   bool     `name:"accept-gap" help:"Also those that wait for an earlier version, and those parked behind them. That version is skipped if it comes after all." env:"-"`
	Force bool     `help:"Also those that are refused as too_old or replay_limit: a too old event may have been applied before. With --accept-gap also version_jump: all versions below it are skipped from then on." env:"-"`
}

// Run replays in one service after the other.
func (c *DLQReplay) Run(ctx context.Context, to streams) error {
	if err := c.checkBounds(); err != nil {
		return err
	}
	services, picked, err := c.choose(c.Operator, c.Change, c.IDs, c.All)
	if err != nil {
		return err
	}
	what := effect{done: "Replayed", would: "replay", thing: "dead letter"}
	return inTurn(ctx, to, c.Operator, services, what, !c.Yes,
		func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
			filter := c.body("waiting", picked.ids[s.Name])
			filter.Limit = c.Limit
			return client.Stream(ctx, s, progress, client.Post("/admin/v1/dead-letters/replay", adminapi.ReplayRequest{
				By: c.who(), Reason: c.why(), DryRun: !c.Yes, Filter: filter, All: set(c.All), Force: set(c.Force),
				AcceptGap: set(c.Gap), Rate: c.Rate,
			}))
		})
}

const maxRate = 1e6 // dead letters per second; no handler is that fast

// checkBounds refuses what is no bound: none at all is said by leaving the flag out.
func (c *DLQReplay) checkBounds() error {
	if c.Limit != nil && *c.Limit < 1 {
		return usage("--limit is a number of dead letters above 0; leave it out to replay all that are picked")
	}
	if c.Rate != nil && !(*c.Rate > 0 && *c.Rate <= maxRate) { // NaN is neither
		return usage("--rate is a number of dead letters per second above 0, at most 1000000; leave it out to " +
			"replay as fast as they go")
	}
	return nil
}

// choose finds what a change of many dead letters is about. It wants to be told: everything is only meant with --all.
func (f *LetterFilter) choose(
	o Operator, change Change, ids []string, all bool,
) (services []*client.Service, picked pick, err error) {
	switch {
	case all && (len(ids) > 0 || f.given()):
		return nil, picked, usage("--all goes with no id and no filter")
	case !all && len(ids) == 0 && !f.given():
		return nil, picked, usage("say which dead letters: ids, filters or --all")
	}
	if err := change.check(); err != nil {
		return nil, picked, err
	}
	if err := f.check(); err != nil {
		return nil, picked, err
	}
	if services, err = o.connect(); err != nil {
		return nil, picked, err
	}
	picked, err = parseIDs(ids, services)
	return picked.of(services), picked, err
}
