package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// effect says what a change does, with what goes before the count and the things, and what follows.
type effect struct {
	done, would string // "Released"; "release"
	thing       string // "key"
	after       string // of the service's name; "back"
}

// line is what it comes to in one service.
func (e effect) line(dryRun bool, count int64, service string) string {
	text := e.done
	if dryRun {
		text = "Would " + e.would
	}
	text += fmt.Sprintf(" %d %s", count, e.thing)
	if count != 1 {
		text += "s"
	}
	text += " of " + service
	if e.after != "" && !strings.HasPrefix(e.after, ";") {
		text += " "
	}
	return text + e.after + "."
}

// effects is the sum over the services.
type effects struct {
	DryRun   bool                       `json:"dry_run"`
	Count    int64                      `json:"count"`
	Failed   int64                      `json:"failed"`
	Errors   []undone                   `json:"errors,omitempty"` // the first hundred of each service
	Services map[string]adminapi.Result `json:"services"`
}

func (e *effects) add(name string, r adminapi.Result) {
	if e.Services == nil {
		e.Services = map[string]adminapi.Result{}
	}
	e.DryRun, e.Count, e.Failed = r.DryRun, e.Count+r.Count, e.Failed+r.Failed
	e.Services[name] = r
	if r.Errors == nil {
		return
	}
	for i, f := range *r.Errors {
		if id, err := strconv.ParseInt(f.Subject, 10, 64); err == nil {
			f.Subject = letterID(name, id)
		}
		(*r.Errors)[i] = f
		e.Errors = append(e.Errors, undone{f.Subject, f.Code, f.Detail})
	}
}

// undone is one thing that was tried and is not done.
type undone struct {
	Subject string `json:"subject"`
	Code    string `json:"code"`
	Detail  string `json:"detail"`
}

const maxShown = 100

// refusedError is a change of which nothing could be done.
type refusedError struct{ failed int64 }

func (e *refusedError) Error() string   { return fmt.Sprintf("none of %d are done", e.failed) }
func (*refusedError) ExitCode() int     { return exitRefused }
func (*refusedError) ErrorCode() string { return "refused" }

// inTurn makes a change in one service after the other, shows progress, and says what came of it. The first service
// that fails ends it; if another one had done something by then, the whole is partly done.
func inTurn(
	ctx context.Context, to streams, o Operator, services []*client.Service, what effect, dryRun bool,
	change func(s *client.Service, progress func(int64)) (adminapi.Result, error),
) error {
	if err := identify(ctx, services); err != nil {
		return err
	}
	var sum effects
	for _, s := range services {
		p := to.progress(s.Name)
		result, err := change(s, p.show)
		p.end()
		if err = cmp.Or(ctx.Err(), err); err != nil {
			if result.Count > 0 {
				sum.add(s.Name, result)
			}
			if sum.Count > 0 && !dryRun {
				return both(sum.write(to, o, what), &partialError{err})
			}
			return err
		}
		sum.add(s.Name, result)
	}
	return sum.write(to, o, what)
}

// whoHasIt makes a change in the one service that knows the thing.
func whoHasIt(
	ctx context.Context, to streams, o Operator, services []*client.Service, what effect,
	change func(s *client.Service) (adminapi.Result, error),
) error {
	if err := identify(ctx, services); err != nil {
		return err
	}
	var sum effects
	var errs []error
	for _, s := range services {
		result, err := change(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sum.add(s.Name, result)
	}
	if len(sum.Services) > 0 {
		return sum.write(to, o, what) // that the other service does not know it is as it should be
	}
	for _, err := range errs {
		if exitCode(err) != exitNotFound { // a service that could not be asked may be the one
			return err
		}
	}
	return errors.Join(errs...)
}

// write says it, and ends with 5 when something was tried and is not done.
func (e *effects) write(to streams, o Operator, what effect) error {
	var failed error
	switch {
	case e.Failed > 0 && e.Count == 0:
		failed = &refusedError{e.Failed}
	case e.Failed > 0:
		failed = &partialError{fmt.Errorf("%d of %d are not done", e.Failed, e.Failed+e.Count)}
	}
	if o.json() {
		return both(writeJSON(to.out, e), failed)
	}
	for _, name := range inOrder(e.Services) {
		result := e.Services[name]
		if result.Count == 0 && e.Count > 0 {
			continue
		}
		if err := to.say("%s", what.line(e.DryRun, result.Count, name)); err != nil {
			return err
		}
	}
	refused := table{columns: []string{"NOT DONE", "CODE", "WHY"}, prose: []string{"WHY"}}
	for _, f := range e.Errors {
		refused.add(f.Subject, f.Code, f.Detail)
	}
	if err := o.show(to, &refused); err != nil {
		return err
	}
	if e.DryRun && e.Count > 0 {
		return both(to.say("Nothing was changed. To do it, add: --yes --reason \"why\""), failed)
	}
	return failed
}

// both joins the error of writing with the one of what was to be written, of which the second decides the exit code.
func both(writing, asking error) error {
	if asking == nil || exitCode(writing) != service.ExitOK {
		return cmp.Or(writing, asking)
	}
	return asking
}
