package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// verb is what an operator can do.
type verb struct {
	Do, Doing, Done, Things string // Replay, Replaying, Replayed; dead letters
	Note                    string // what to know before
	Danger                  bool
	request                 func(c *change) client.Request
	long                    bool // it tells how far it is
}

var verbs = map[string]verb{
	"replay": {
		Do: "Replay", Doing: "Replaying", Done: "Replayed", Things: "dead letters", long: true, request: replay,
		Note: "Those of a key run in their order and stop at the first that fails; other keys continue. " +
			"It is safe to repeat.",
	},
	"discard": {
		Do: "Discard", Doing: "Discarding", Done: "Discarded", Things: "dead letters", long: true, request: discard,
		Danger: true, Note: "They are settled without being handled. Events parked behind them are resumed.",
	},
	"edit": {
		Do: "Edit", Doing: "Editing", Done: "Edited", Things: "dead letters", request: edit,
		Note: "The original stays beside the new payload, which is checked when it is replayed.",
	},
	"retry": {
		Do: "Send again", Doing: "Listing", Done: "Listed again", Things: "mails", request: settle("retry"),
		Note: "One that is uncertain may then arrive twice, with the same Message-ID.",
	},
	"mark-sent": {
		Do: "Mark as sent", Doing: "Marking", Done: "Marked as sent", Things: "mails", request: settle("mark-sent"),
		Note: "For mails of which you know that they arrived: they are never sent again.",
	},
}

// change is what a form asks for.
type change struct {
	verb
	Form url.Values // its fields, for the form that repeats them

	service    *client.Service
	filter     adminapi.DeadLetterFilter
	dryRun     bool
	by, reason string
}

// Service is where it is done.
func (c *change) Service() string { return c.service.Name }

// Back is the page of this console to look at again afterwards.
func (c *change) Back() string {
	if back := c.Form.Get("back"); strings.HasPrefix(back, "/") && !strings.HasPrefix(back, "//") {
		return back
	}
	return "/"
}

// read reads a form. A dry run needs no name and no reason, everything else does.
func (c *changes) read(r *http.Request, dryRun bool) (*change, error) {
	if err := r.ParseForm(); err != nil {
		return nil, errors.New("the form cannot be read")
	}
	form := r.PostForm
	asked := &change{
		Form: form, dryRun: dryRun,
		by: strings.TrimSpace(form.Get("by")), reason: strings.TrimSpace(form.Get("reason")),
	}
	var known bool
	if asked.verb, known = verbs[form.Get("verb")]; !known {
		return nil, errors.New("there is no such operation")
	}
	var err error
	if asked.service, err = c.serviceOf(form.Get("service")); err != nil {
		return nil, err
	}
	if asked.filter, err = filterOf(form); err != nil {
		return nil, err
	}
	switch {
	case form.Get("verb") == "edit" && len(asked.filter.IDs) != 1:
		return nil, errors.New("one dead letter is edited at a time")
	case asked.Things == "mails" && len(form["mail"]) == 0:
		return nil, errors.New("choose the mails first")
	case dryRun:
		asked.by, asked.reason = "console", "dry run"
	case asked.by == "" || asked.reason == "":
		return nil, errors.New("the audit needs a reason and a name")
	}
	return asked, nil
}

// filterOf reads the conditions of a form or of an address. It picks those that wait, as every change does.
func filterOf(from url.Values) (filter adminapi.DeadLetterFilter, err error) {
	for _, text := range from["id"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return filter, errors.New("an id is no number")
		}
		filter.IDs = append(filter.IDs, id)
	}
	filter.Consumer, filter.Code = from.Get("consumer"), from.Get("code")
	filter.Type, filter.Key = from.Get("type"), from.Get("key")
	return filter, nil
}

func replay(c *change) client.Request {
	return client.Post("/admin/v1/dead-letters/replay", adminapi.ReplayRequest{
		By: c.by, Reason: c.reason, DryRun: c.dryRun, Filter: c.filter,
		Force: c.Form.Get("force") != "", AcceptGap: c.Form.Get("accept_gap") != "",
	})
}

func discard(c *change) client.Request {
	return client.Post("/admin/v1/dead-letters/discard", adminapi.DiscardRequest{
		By: c.by, Reason: c.reason, DryRun: c.dryRun, Filter: c.filter,
	})
}

func edit(c *change) client.Request {
	payload := []byte(strings.ReplaceAll(c.Form.Get("payload"), "\r\n", "\n")) // forms send line ends as mails do
	return client.Post(fmt.Sprintf("/admin/v1/dead-letters/%d/edit", c.filter.IDs[0]),
		adminapi.EditRequest{By: c.by, Reason: c.reason, DryRun: c.dryRun, Payload: payload})
}

func settle(how string) func(*change) client.Request {
	return func(c *change) client.Request {
		return client.Post("/admin/v1/mails/"+how,
			adminapi.MailRequest{By: c.by, Reason: c.reason, DryRun: c.dryRun, Ids: c.Form["mail"]})
	}
}

func (c *change) run(ctx context.Context, progress func(int64)) (adminapi.Result, error) {
	if c.long {
		return client.Stream(ctx, c.service, func(done, _ int64) { progress(done) }, c.request(c))
	}
	return client.Call[adminapi.Result](ctx, c.service, c.request(c))
}

// outcome is what came of a change, or would.
type outcome struct {
	*change
	ID       int // of the operation
	Progress int64
	Result   adminapi.Result
	Err      error
	Ended    bool
}

// Tried says that it was a dry run.
func (o outcome) Tried() bool { return o.change != nil && o.dryRun }

// try answers with what the change would do, and with the form that does it.
func (c *changes) try(w http.ResponseWriter, r *http.Request) {
	asked, err := c.read(r, true)
	tried := outcome{change: asked, Err: err}
	if err == nil {
		tried.Result, tried.Err = asked.run(r.Context(), func(int64) {})
	}
	c.answer(w, r, http.StatusOK, "plan", tried)
}

// begin begins the change, which goes on without a viewer, and answers with what follows it.
func (c *changes) begin(w http.ResponseWriter, r *http.Request) {
	asked, err := c.read(r, false)
	if err != nil {
		c.answer(w, r, http.StatusOK, "plan", outcome{Err: err})
		return
	}
	c.answer(w, r, http.StatusOK, "progress", c.start(context.WithoutCancel(r.Context()), asked))
}

// follow answers the page that asks again how far a change is.
func (c *changes) follow(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	state, known := c.get(id)
	if !known {
		http.NotFound(w, r)
		return
	}
	c.answer(w, r, http.StatusOK, "progress", state)
}

// keptOperations is how many are remembered, the newest.
const keptOperations = 50

// changes are those that operators have begun on the console's pages, and how far each is.
type changes struct {
	*Console

	mu      sync.Mutex
	last    int
	all     map[int]*outcome
	running sync.WaitGroup
}

func (c *changes) get(id int) (state outcome, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known = c.all[id] != nil; known {
		state = *c.all[id]
	}
	return state, known
}

// start begins a change, which ends early when the console does: the service then stops where it is.
func (c *changes) start(ctx context.Context, asked *change) outcome {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	delete(c.all, c.last-keptOperations)
	begun := &outcome{change: asked, ID: c.last}
	c.all[c.last] = begun
	c.running.Go(func() {
		defer cancel()
		defer context.AfterFunc(c.life, cancel)()
		result, err := asked.run(ctx, func(done int64) {
			c.mu.Lock()
			defer c.mu.Unlock()
			begun.Progress = done
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		begun.Result, begun.Err, begun.Ended = result, err, true
	})
	return *begun
}
