package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
)

// Change has the flags of every change, and the members that its request has for them.
type Change struct {
	effect `json:"-" kong:"-"`

	DryRun bool   `json:"dry_run" kong:"-"`
	Yes    bool   `json:"-" help:"Do it. Without this the command shows its effect and changes nothing." env:"-"`
	Reason string `json:"reason" help:"Why, for the audit; needed with --yes." env:"-" placeholder:"TEXT"`
	By     string `json:"by" help:"Your name, for the audit. Default: the user of this process." env:"-" placeholder:"NAME"`
}

// effect has the tags of the command, and those of its flags in their place.
type effect struct {
	post        string // the operation's path
	done, would string // "Released"; "release"
	thing       string // "key"
	after       string // the service's name: " as sent"
	one         bool   // each service has its own: it needs --service
	parts       bool   // each service has a part: a dead letter's is in one, those of a filter are in all
}

// AfterApply fills the optional flags and the effect.
func (c *Change) AfterApply(command *kong.Context) error {
	if c.Yes && strings.TrimSpace(c.Reason) == "" {
		return usage("--yes needs --reason: the audit shows why things were changed")
	}
	c.DryRun = !c.Yes
	c.Reason = cmp.Or(c.Reason, "dry run")
	if u, err := user.Current(); err == nil {
		c.By = cmp.Or(c.By, u.Username)
	}
	c.By = cmp.Or(c.By, "unknown")
	tags := []*kong.Tag{command.Selected().Tag}
	for _, given := range command.Path {
		if given.Flag != nil {
			tags = append(tags, given.Flag.Tag)
		}
	}
	for _, tag := range tags {
		c.effect = effect{
			post: cmp.Or(tag.Get("post"), c.post), done: cmp.Or(tag.Get("done"), c.done),
			would: cmp.Or(tag.Get("would"), c.would), thing: cmp.Or(tag.Get("thing"), c.thing),
			after: cmp.Or(tag.Get("after"), c.after), one: c.one || tag.Has("one"), parts: c.parts || tag.Has("parts"),
		}
	}
	return nil
}

var errSeveral = usage("each service has its own: give --service too")

// ProvideServices also asks for their names.
func (c *Change) ProvideServices(ctx context.Context, at *Connection, to *streams) ([]*client.Service, error) {
	services, err := at.asked(to)
	if err != nil {
		return nil, err
	}
	if c.one && len(services) > 1 {
		return nil, errSeveral
	}
	return services, askWho(ctx, services)
}

// Run sends every service the members of the command.
func (c *Change) Run(ctx context.Context, command *kong.Context, to *streams, services []*client.Service) error {
	body := command.Selected().Target.Addr().Interface()
	return c.apply(ctx, to, services, func(*client.Service) any { return body })
}

// apply changes one service after the other. If each has a part of the change, the first that fails ends it. Else one
// has the thing, the others answer 404, and a failure counts only if none has it.
func (c *Change) apply(
	ctx context.Context, to *streams, services []*client.Service, bodyOf func(*client.Service) any,
) (failed error) {
	sum := effects{Result: adminapi.Result{DryRun: c.DryRun}}
	var answers []client.Answer[adminapi.Result]
	for _, s := range services {
		result, err := client.Stream(ctx, s, to.progress(s.Name), client.Post(c.post, bodyOf(s)))
		err = cmp.Or(ctx.Err(), err)
		answers = append(answers, client.Answer[adminapi.Result]{Service: s.Name, Value: result, Err: err})
		if err == nil || result.Count > 0 {
			sum.add(s.Name, result)
		}
		if failed = err; c.parts && failed != nil {
			break
		}
	}
	if !c.parts {
		answers, _, failed = sorted(answers)
		sum.forgetMissing(answers)
	}
	if failed != nil && (sum.Count == 0 || c.DryRun) {
		return failed
	}
	err := sum.write(to, c.effect)
	if err == nil && sum.Count == 0 && len(services) > 0 {
		err = c.reportNone(to, values(bodyOf(services[0])))
	}
	return cmp.Or(partial(failed), err)
}

// reportNone is for a change that picked nothing. A job may repeat one with conditions, and ids are mistyped.
func (c *Change) reportNone(to *streams, asked item) error {
	err := errors.New("no such " + c.thing + " was found")
	if asked.isSet("event_ids") {
		return &ending{error: err, exit: exitNotFound, code: "not_found", answered: true}
	}
	to.warn("%v", err)
	return nil
}

type effects struct {
	adminapi.Result // the sum

	Services map[string]adminapi.Result `json:"services"`
}

const maxShown = 100 // a service sends no more errors

func (e *effects) add(name string, r adminapi.Result) {
	if e.Services == nil {
		e.Services = map[string]adminapi.Result{}
	}
	e.DryRun, e.Count, e.Failed = r.DryRun, e.Count+r.Count, e.Failed+r.Failed
	e.Services[name] = r
	for i, f := range r.Errors {
		if _, err := strconv.ParseInt(f.Subject, 10, 64); err == nil {
			r.Errors[i].Subject = name + "/" + f.Subject
		}
	}
	e.Errors = append(e.Errors, r.Errors...)
}

// forgetMissing leaves out failures of things that another service has: of several mails each is in one.
func (e *effects) forgetMissing(found []client.Answer[adminapi.Result]) {
	if len(found) == 0 {
		return
	}
	e.Failed = max(0, found[0].Value.Count+found[0].Value.Failed-e.Count)
	lacking := map[string]int{}
	e.Errors = slices.DeleteFunc(e.Errors, func(f adminapi.Failure) bool {
		if !isMissing(f) {
			return false
		}
		lacking[f.Subject]++
		return lacking[f.Subject] < len(found)
	})
}

func isMissing(f adminapi.Failure) bool { return f.Code == "not_found" || f.Code == "mail_not_found" }

// The exit code is 5 if a part is not done, 4 if nothing is done, and 3 if nothing was found.
func (e *effects) write(to *streams, what effect) error {
	if to.json() {
		to.document(e)
	} else {
		e.writeLines(to, what)
	}
	switch {
	case e.Failed == 0:
	case e.Count == 0 && !slices.ContainsFunc(e.Errors, func(f adminapi.Failure) bool { return !isMissing(f) }):
		err := errors.New("no such " + what.thing + " was found")
		return &ending{error: err, exit: exitNotFound, code: "not_found", answered: true}
	case e.Count == 0:
		return &ending{error: errors.New("nothing was done"), exit: exitRefused, code: "refused", answered: true}
	default:
		return partial(fmt.Errorf("%d of %d are not done", e.Failed, e.Failed+e.Count))
	}
	return nil
}

func (e *effects) writeLines(to *streams, what effect) {
	verb := what.done
	if e.DryRun {
		verb = "Would " + what.would
	}
	var notes []string
	for _, name := range inOrder(e.Services) {
		result := e.Services[name]
		if result.Count > 0 || e.Count == 0 {
			to.say("%s %s of %s%s.", verb, service.Count(result.Count, what.thing), name, what.after)
		}
		if result.Note != "" && !slices.Contains(notes, result.Note) {
			notes = append(notes, result.Note)
		}
	}
	to.show(table{view{columns: "NOT_DONE subject, CODE code, WHY detail"}, values(e).items("errors")})
	if rest := e.Failed - int64(len(e.Errors)); rest > 0 {
		to.say("%d more are not done. Only the first %d of each service are listed.", rest, maxShown)
	}
	for _, note := range notes {
		to.say("%s", note)
	}
	if e.DryRun && e.Count > 0 {
		to.say("Nothing was changed. To do it, add: --yes --reason \"why\"")
	}
}
