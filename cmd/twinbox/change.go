package main

import (
	"cmp"
	"context"
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

// Change has the flags of every command that changes something. It is a part of the request's body, too.
type Change struct {
	effect `json:"-" kong:"-"`

	DryRun bool   `json:"dry_run" kong:"-"`
	Yes    bool   `json:"-" help:"Do it. Without this the command shows its effect and changes nothing." env:"-"`
	Reason string `json:"reason" help:"Why, for the audit; needed with --yes." env:"-" placeholder:"TEXT"`
	By     string `json:"by" help:"Your name, for the audit. Default: the user of this process." env:"-" placeholder:"NAME"`
}

// effect has the tags of the command.
type effect struct {
	post        string // the operation's path
	done, would string // "Released"; "release"
	thing       string // "key"
	after       string // the service's name: " as sent"
	one         bool   // each service has its own
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
	tag := command.Selected().Tag
	c.effect = effect{
		post: tag.Get("post"), done: tag.Get("done"), would: tag.Get("would"), thing: tag.Get("thing"),
		after: tag.Get("after"), one: tag.Has("one"),
	}
	return nil
}

var errSeveral = usage("each service has its own: give --service too")

// ProvideServices finds the services and asks for their names.
func (c *Change) ProvideServices(ctx context.Context, at *Connection) ([]*client.Service, error) {
	services, err := at.services()
	if err != nil {
		return nil, err
	}
	if c.one && len(services) > 1 {
		return nil, errSeveral
	}
	return services, askWho(ctx, services)
}

// Run asks every service; those without the thing answer 404. A service that does not answer fails the change only if
// no other one has the thing.
func (c *Change) Run(ctx context.Context, command *kong.Context, to *streams, services []*client.Service) error {
	request := client.Post(c.post, command.Selected().Target.Addr().Interface())
	found, _, err := ask(services, func(s *client.Service) (adminapi.Result, error) {
		return client.Call[adminapi.Result](ctx, s, request)
	})
	if err != nil {
		return err
	}
	var sum effects
	for _, a := range found {
		sum.add(a.Service, a.Value)
	}
	// Of several mails each is in one service, and every service was asked for all.
	sum.Failed = max(0, found[0].Value.Count+found[0].Value.Failed-sum.Count)
	lacking := map[string]int{}
	sum.Errors = slices.DeleteFunc(sum.Errors, func(f adminapi.Failure) bool {
		if !strings.HasSuffix(f.Code, "_not_found") {
			return false
		}
		lacking[f.Subject]++
		return lacking[f.Subject] < len(found)
	})
	return sum.write(to, c.effect)
}

// inTurn changes each service's part. The first service that fails ends the change.
func (c *Change) inTurn(
	ctx context.Context, to *streams, services []*client.Service, bodyOf func(*client.Service) any,
) error {
	sum := effects{Result: adminapi.Result{DryRun: c.DryRun}}
	for _, s := range services {
		result, err := client.Stream(ctx, s, to.progress(s.Name), client.Post(c.post, bodyOf(s)))
		err = cmp.Or(ctx.Err(), err)
		if err == nil || result.Count > 0 {
			sum.add(s.Name, result)
		}
		switch {
		case err != nil && sum.Count > 0 && c.Yes:
			_ = sum.write(to, c.effect)
			return partial(err)
		case err != nil:
			return err
		}
	}
	return sum.write(to, c.effect)
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

// The exit code is 5 if a part was tried and is not done, 4 if the change did nothing.
func (e *effects) write(to *streams, what effect) error {
	if to.json() {
		to.document(e)
	} else {
		e.writeLines(to, what)
	}
	switch {
	case e.Failed > 0 && e.Count == 0:
		return &ending{error: fmt.Errorf("none of %d are done", e.Failed), exit: exitRefused, code: "refused", answered: true}
	case e.Failed > 0:
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
