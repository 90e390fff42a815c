package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

type verb struct {
	Do, Doing, Done, Thing string // Replay, Replaying, Replayed; dead letter
	Note                   string // what to know before
	run                    func(ctx context.Context, c *change, progress func(int64)) (adminapi.Result, error)
}

var verbs = map[string]verb{
	"replay": {
		Do: "Replay", Doing: "Replaying", Done: "Replayed", Thing: "dead letter", run: replay,
		Note: "Those of a key run in their order and stop at the first that fails. Other keys continue. " +
			"It is safe to repeat.",
	},
	"release": {
		Do: "Release", Doing: "Releasing", Done: "Released", Thing: "key", run: release,
		Note: "The relay tries the events of these keys again, in their order.",
	},
	"resume-consumer": {
		Do: "Resume", Doing: "Resuming", Done: "Resumed", Thing: "consumer", run: resumeConsumer,
		Note: "The consumer continues where it stopped.",
	},
	"resume-relay": {
		Do: "Resume", Doing: "Resuming", Done: "Resumed", Thing: "relay", run: resumeRelay,
		Note: "The relay continues where it stopped.",
	},
}

type change struct {
	verb
	Form    url.Values // its fields, for the form that repeats them
	Service *client.Service

	filter     adminapi.DeadLetterFilter
	dryRun     bool
	by, reason string
}

// Back is the console's page to show afterwards.
func (c *change) Back() string {
	if back := c.Form.Get("back"); strings.HasPrefix(back, "/") && !strings.HasPrefix(back, "//") {
		return back
	}
	return "/"
}

// Total is the dry run's count; "": unknown.
func (c *change) Total() string { return c.Form.Get("total") }

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
	found, err := c.serviceOf(form.Get("service"))
	if err != nil {
		return nil, err
	}
	service := *found // the change names the environment of its dry run, so that a different one refuses it
	service.Environment = cmp.Or(service.Environment, form.Get("environment"), c.flow.environment(service.Name))
	form.Set("environment", service.Environment)
	asked.Service = &service
	if asked.filter, err = filterOf(form); err != nil {
		return nil, err
	}
	switch {
	case dryRun:
		asked.by, asked.reason = "console", "dry run"
	case asked.by == "" || asked.reason == "":
		return nil, errors.New("the audit needs a reason and a name")
	}
	return asked, nil
}

// filterOf picks waiting dead letters only, as every change does.
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

func replay(ctx context.Context, c *change, progress func(int64)) (adminapi.Result, error) {
	asked := adminapi.ReplayRequest{
		By: c.by, Reason: c.reason, DryRun: c.dryRun, Filter: c.filter,
		Force: c.Form.Get("force") != "", AcceptGap: c.Form.Get("accept_gap") != "",
	}
	return client.Stream(ctx, c.Service, func(done, _ int64) { progress(done) },
		client.Post("/admin/v1/dead-letters/replay", asked))
}

func release(ctx context.Context, c *change, progress func(int64)) (sum adminapi.Result, err error) {
	status, err := client.Call[adminapi.OutboxStatus](ctx, c.Service, client.Get("/admin/v1/outbox/status", nil))
	sum.DryRun = c.dryRun
	for _, parked := range status.Parked {
		asked := adminapi.ReleaseRequest{
			By: c.by, Reason: c.reason, DryRun: c.dryRun, Topic: parked.Topic, Key: parked.Key,
		}
		_, err := client.Call[adminapi.Result](ctx, c.Service, client.Post("/admin/v1/outbox/release", asked))
		refused, is := errors.AsType[*client.ProblemError](err)
		switch {
		case is:
			sum.Fail(parked.Topic+"/"+parked.Key, refused.Problem.Code, refused.Problem.Detail)
		case err != nil:
			return sum, err
		default:
			sum.Count++
		}
		progress(sum.Count + sum.Failed)
	}
	return sum, err
}

func resumeConsumer(ctx context.Context, c *change, _ func(int64)) (adminapi.Result, error) {
	return client.Call[adminapi.Result](ctx, c.Service, client.Post("/admin/v1/consumers/resume",
		adminapi.ConsumerRequest{By: c.by, Reason: c.reason, DryRun: c.dryRun, Consumer: c.Form.Get("consumer")}))
}

func resumeRelay(ctx context.Context, c *change, _ func(int64)) (adminapi.Result, error) {
	return client.Call[adminapi.Result](ctx, c.Service, client.Post("/admin/v1/outbox/resume",
		adminapi.RelayRequest{By: c.by, Reason: c.reason, DryRun: c.dryRun}))
}

type outcome struct {
	*change
	ID       int // of the operation
	Progress int64
	Result   adminapi.Result
	Err      error
	Ended    bool

	stop context.CancelFunc
}

func (o outcome) Tried() bool { return o.change != nil && o.dryRun }

func (c *changes) try(w http.ResponseWriter, r *http.Request) {
	asked, err := c.read(r, true)
	tried := outcome{change: asked, Err: err}
	if err == nil {
		tried.Result, tried.Err = asked.run(r.Context(), asked, func(int64) {})
	}
	c.answer(w, r, http.StatusOK, "plan", tried)
}

// The change continues without a viewer.
func (c *changes) begin(w http.ResponseWriter, r *http.Request) {
	asked, err := c.read(r, false)
	if err != nil {
		c.answer(w, r, http.StatusOK, "plan", outcome{Err: err})
		return
	}
	c.answer(w, r, http.StatusOK, "progress", c.start(asked))
}

// follow shows a change. A POST stops it.
func (c *changes) follow(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.PathValue("id"))
	state, known := c.get(id)
	if !known {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPost {
		state.stop()
	}
	c.answer(w, r, http.StatusOK, "progress", state)
}

type changes struct {
	*Console

	mu      sync.Mutex
	all     []*outcome // the first has the id 1
	running sync.WaitGroup
}

func (c *changes) get(id int) (state outcome, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known = id > 0 && id <= len(c.all); known {
		state = *c.all[id-1]
	}
	return state, known
}

// The change ends early when the console does: the service then stops where it is.
func (c *changes) start(asked *change) outcome {
	ctx, cancel := context.WithCancel(c.life)
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := &outcome{change: asked, ID: len(c.all) + 1, stop: cancel}
	c.all = append(c.all, begun)
	c.running.Go(func() {
		defer cancel()
		result, err := asked.run(ctx, asked, func(done int64) {
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
