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
)

// Change is what every command that changes something takes. A command is the body of its request, too: under the names
// of their json tags its flags say what is changed.
type Change struct {
	Operator `json:"-"`

	DryRun bool   `json:"dry_run" kong:"-"`
	Yes    bool   `json:"-" help:"Do it. Without this the command says what it would do and changes nothing." env:"-"`
	Reason string `json:"reason" help:"Why, for the audit; needed with --yes." env:"-" placeholder:"TEXT"`
	By     string `json:"by" help:"Your name, for the audit. Default: the user of this process." env:"-" placeholder:"NAME"`
}

// AfterApply fills what may be left out.
func (c *Change) AfterApply() error {
	if c.Yes && strings.TrimSpace(c.Reason) == "" {
		return usage("--yes needs --reason: the audit says why things were changed")
	}
	c.DryRun = !c.Yes
	c.Reason = cmp.Or(c.Reason, "dry run")
	if u, err := user.Current(); err == nil {
		c.By = cmp.Or(c.By, u.Username)
	}
	c.By = cmp.Or(c.By, "unknown")
	return nil
}

// ProvideServices finds the services, and asks them who they are. One that does not answer is left for its turn.
func (c *Change) ProvideServices(ctx context.Context) ([]*client.Service, error) {
	services, err := c.Connection.ProvideServices()
	if err != nil {
		return nil, err
	}
	_, err = askWho(ctx, services)
	if stranger, is := errors.AsType[*ending](err); is {
		return nil, stranger
	}
	return services, nil
}

// ProvideEffect reads the tags in which a command says what it does.
func (c *Change) ProvideEffect(command *kong.Context) effect {
	tag := command.Selected().Tag
	return effect{tag.Get("done"), tag.Get("would"), tag.Get("thing"), tag.Get("after")}
}

// Run makes the change that the command's tag names, in the service that knows the thing.
func (c *Change) Run(
	ctx context.Context, command *kong.Context, to *streams, services []*client.Service, what effect,
) error {
	node := command.Selected()
	return whoHasIt(ctx, to, services, what, client.Post(node.Tag.Get("post"), node.Target.Addr().Interface()))
}

// effect says what a change does, with what goes before the count and the things, and what follows.
type effect struct {
	done, would string // "Released"; "release"
	thing       string // "key"
	after       string // of the service's name: " back"
}

// line is what it comes to in one service.
func (e effect) line(dryRun bool, count int64, service string) string {
	verb, plural := e.done, "s"
	if dryRun {
		verb = "Would " + e.would
	}
	if count == 1 {
		plural = ""
	}
	return fmt.Sprintf("%s %d %s%s of %s%s.", verb, count, e.thing, plural, service, e.after)
}

// effects is the sum over the services.
type effects struct {
	DryRun   bool                       `json:"dry_run"`
	Count    int64                      `json:"count"`
	Failed   int64                      `json:"failed"`
	Errors   []adminapi.Failure         `json:"errors,omitempty"` // the first hundred of each service
	Services map[string]adminapi.Result `json:"services"`
}

const maxShown = 100

// notes returns what the services note, each sentence once.
func (e *effects) notes() (notes []string) {
	for _, name := range inOrder(e.Services) {
		if note := e.Services[name].Note; note != "" && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

func (e *effects) add(name string, r adminapi.Result) {
	if e.Services == nil {
		e.Services = map[string]adminapi.Result{}
	}
	e.DryRun, e.Count, e.Failed = r.DryRun, e.Count+r.Count, e.Failed+r.Failed
	e.Services[name] = r
	for i, f := range r.Errors {
		if id, err := strconv.ParseInt(f.Subject, 10, 64); err == nil {
			r.Errors[i].Subject = letterID(name, id)
		}
	}
	e.Errors = append(e.Errors, r.Errors...)
}

// inTurn makes a change in one service after the other, shows progress, and says what came of it. The first service
// that fails ends it; if something was done by then, the whole is partly done.
func (c *Change) inTurn(
	ctx context.Context, to *streams, services []*client.Service, what effect,
	change func(s *client.Service, progress func(int64)) (adminapi.Result, error),
) error {
	var sum effects
	for _, s := range services {
		result, err := change(s, to.progress(s.Name))
		err = cmp.Or(ctx.Err(), err)
		if err == nil || result.Count > 0 {
			sum.add(s.Name, result)
		}
		switch {
		case err != nil && sum.Count > 0 && c.Yes:
			_ = sum.write(to, what)
			return partial(err)
		case err != nil:
			return err
		}
	}
	return sum.write(to, what)
}

// stream is a change that is the same in each service and may take long.
func stream(
	ctx context.Context, change client.Request,
) func(*client.Service, func(int64)) (adminapi.Result, error) {
	return func(s *client.Service, progress func(int64)) (adminapi.Result, error) {
		return client.Stream(ctx, s, progress, change)
	}
}

// whoHasIt makes a change in the one service that knows the thing.
func whoHasIt(
	ctx context.Context, to *streams, services []*client.Service, what effect, change client.Request,
) error {
	var sum effects
	var errs []error
	for _, s := range services {
		result, err := client.Call[adminapi.Result](ctx, s, change)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sum.add(s.Name, result)
	}
	if len(sum.Services) > 0 {
		return sum.write(to, what) // that the other service does not know it is as it should be
	}
	for _, err := range errs {
		if exitCode(err) != exitNotFound { // a service that could not be asked may be the one
			return err
		}
	}
	return errors.Join(errs...)
}

// write says it, and ends with 5 when something was tried and is not done, with 4 when nothing is.
func (e *effects) write(to *streams, what effect) error {
	if to.json() {
		to.document(e)
	} else {
		for _, name := range inOrder(e.Services) {
			if result := e.Services[name]; result.Count > 0 || e.Count == 0 {
				to.say("%s", what.line(e.DryRun, result.Count, name))
			}
		}
		undone := table{columns: []string{"NOT DONE", "CODE", "WHY"}, prose: "WHY"}
		for _, f := range e.Errors {
			undone.add(f.Subject, f.Code, f.Detail)
		}
		to.show(&undone)
		if rest := e.Failed - int64(len(e.Errors)); rest > 0 {
			to.say("%d more are not done. Only the first %d of each service are listed.", rest, maxShown)
		}
		for _, note := range e.notes() {
			to.say("%s", note)
		}
		if e.DryRun && e.Count > 0 {
			to.say("Nothing was changed. To do it, add: --yes --reason \"why\"")
		}
	}
	switch {
	case e.Failed > 0 && e.Count == 0:
		return &ending{error: fmt.Errorf("none of %d are done", e.Failed), exit: exitRefused, code: "refused", answered: true}
	case e.Failed > 0:
		return partial(fmt.Errorf("%d of %d are not done", e.Failed, e.Failed+e.Count))
	}
	return nil
}
