package audit

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Change is who changes something and why.
type Change struct {
	By, Reason string // By is required
	DryRun     bool
	// Deed, if set, is an id that the actions of one change share.
	Deed string
	// Progress, if set, gets the number of changed things and the total.
	Progress func(done, total int64)
}

// Action returns the action on one thing.
func (c Change) Action(verb, kind, subject, before, after string) Action {
	detail := map[string]string{}
	if c.Deed != "" {
		detail[DetailDeed] = c.Deed
	}
	return Action{
		By: c.By, Reason: c.Reason, Verb: verb, Kind: kind, Subject: subject, Before: before, After: after, Count: 1,
		Detail: detail,
	}
}

// ReportProgress calls Progress, if set. A total of 0 is unknown.
func (c Change) ReportProgress(done, total int64) {
	if c.Progress != nil {
		c.Progress(done, total)
	}
}

// Beginner is a pool, a connection or a transaction.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

var errDryRun = errors.New("dry run")

// Make runs a change in a transaction and stores the action that it returns. A dry run rolls back.
func (c Change) Make(ctx context.Context, db Beginner, change func(tx pgx.Tx) (Action, error)) error {
	return c.MakeMany(ctx, db, func(tx pgx.Tx) ([]Action, error) {
		action, err := change(tx)
		action.By, action.Reason, action.Count = c.By, c.Reason, 1
		return []Action{action}, err
	})
}

// MakeMany is [Change.Make] for many things, with the actions of [Change.Action].
func (c Change) MakeMany(ctx context.Context, db Beginner, change func(tx pgx.Tx) ([]Action, error)) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		actions, err := change(tx)
		if err != nil {
			return err
		}
		if err := Record(ctx, tx, actions...); err != nil || !c.DryRun {
			return err
		}
		return errDryRun
	})
	if errors.Is(err, errDryRun) {
		return nil
	}
	return err
}

// Result is the result of a change or a dry run.
type Result struct {
	DryRun bool      `json:"dry_run"`
	Count  int64     `json:"count"`            // changed things
	Failed int64     `json:"failed"`           // failed things
	Errors []Failure `json:"errors,omitempty"` // of the first hundred
	Note   string    `json:"note,omitempty"`
}

// Failure is why one thing is not done.
type Failure struct {
	Subject string `json:"subject"`
	Code    string `json:"code"` // stable
	Detail  string `json:"detail"`
}

const maxFailures = 100

// Fail counts a failure and adds why.
func (r *Result) Fail(subject, code, detail string) {
	r.Failed++
	if len(r.Errors) < maxFailures {
		r.Errors = append(r.Errors, Failure{subject, code, detail})
	}
}
