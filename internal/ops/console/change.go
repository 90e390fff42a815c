package console

import (
	"cmp"
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

// A change is tried first. Then it is done once, with a name and a reason for the audit.
type change struct {
	verb
	ID       string
	Service  *client.Service // in the environment of the dry run, so that a different one refuses the change
	Progress int64
	Result   adminapi.Result // of the dry run, until the change has ended
	Err      error
	Ended    bool

	form       url.Values
	filter     adminapi.DeadLetterFilter
	dryRun     bool
	by, reason string
	stop       context.CancelFunc // nil: the change has not begun
}

// Back is the console's page to show afterwards.
func (c *change) Back() string {
	if back := c.form.Get("back"); strings.HasPrefix(back, "/") && !strings.HasPrefix(back, "//") {
		return back
	}
	return "/"
}

func (c *Console) readChange(r *http.Request) (*change, error) {
	if err := r.ParseForm(); err != nil {
		return nil, errors.New("the form cannot be read")
	}
	asked := &change{form: r.PostForm, dryRun: true, by: "console", reason: "dry run"}
	var known bool
	if asked.verb, known = verbs[asked.form.Get("verb")]; !known {
		return nil, errors.New("there is no such operation")
	}
	found, err := c.serviceOf(asked.form.Get("service"))
	if err != nil {
		return nil, err
	}
	service := *found
	service.Environment = cmp.Or(service.Environment, c.flow.environment(service.Name))
	asked.Service = &service
	asked.filter, err = filterOf(asked.form)
	return asked, err
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
		Force: c.form.Get("force") != "", AcceptGap: c.form.Get("accept_gap") != "",
	}
	return client.Stream(ctx, c.Service, func(done, _ int64) { progress(done) },
		client.Post("/admin/v1/dead-letters/replay", asked))
}

func release(ctx context.Context, c *change, progress func(int64)) (sum adminapi.Result, err error) {
	status, err := client.Call[adminapi.OutboxStatus](ctx, c.Service, client.Get("/admin/v1/outbox/status"))
	sum.DryRun = c.dryRun
	if more := status.ParkedKeys - int64(len(status.Parked)); more > 0 {
		sum.Note = fmt.Sprintf("%d more keys are parked: release again after this.", more)
	}
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
		adminapi.ConsumerRequest{By: c.by, Reason: c.reason, DryRun: c.dryRun, Consumer: c.form.Get("consumer")}))
}

func resumeRelay(ctx context.Context, c *change, _ func(int64)) (adminapi.Result, error) {
	return client.Call[adminapi.Result](ctx, c.Service, client.Post("/admin/v1/outbox/resume",
		adminapi.RelayRequest{By: c.by, Reason: c.reason, DryRun: c.dryRun}))
}

// changes are those that were tried, by their ids.
type changes struct {
	life    context.Context // of Run
	mu      sync.Mutex
	tried   map[string]*change
	running sync.WaitGroup
}

func (c *Console) tryChange(w http.ResponseWriter, r *http.Request) {
	asked, err := c.readChange(r)
	if err == nil {
		asked.Result, err = asked.run(r.Context(), asked, func(int64) {})
	}
	if err != nil {
		c.answer(w, r, http.StatusOK, "plan", change{Err: err})
		return
	}
	c.changes.mu.Lock()
	asked.ID = strconv.Itoa(len(c.changes.tried) + 1)
	c.changes.tried[asked.ID] = asked
	c.changes.mu.Unlock()
	c.answer(w, r, http.StatusOK, "plan", asked)
}

// beginChange does a change that was tried, once. It continues without a viewer.
func (c *Console) beginChange(w http.ResponseWriter, r *http.Request) {
	by, reason := strings.TrimSpace(r.PostFormValue("by")), strings.TrimSpace(r.PostFormValue("reason"))
	if by == "" || reason == "" {
		c.answer(w, r, http.StatusOK, "plan", change{Err: errors.New("the audit needs a reason and a name")})
		return
	}
	c.withChange(w, r, func(asked *change) {
		if asked.stop == nil {
			asked.by, asked.reason, asked.dryRun = by, reason, false
			c.changes.start(asked)
		}
	})
}

// start needs the lock.
func (all *changes) start(asked *change) {
	ctx, cancel := context.WithCancel(all.life)
	asked.stop = cancel
	all.running.Go(func() {
		defer cancel()
		result, err := asked.run(ctx, asked, func(done int64) {
			all.mu.Lock()
			defer all.mu.Unlock()
			asked.Progress = done
		})
		all.mu.Lock()
		defer all.mu.Unlock()
		asked.Result, asked.Err, asked.Ended = result, err, true
	})
}

func (c *Console) followChange(w http.ResponseWriter, r *http.Request) {
	c.withChange(w, r, func(*change) {})
}

func (c *Console) stopChange(w http.ResponseWriter, r *http.Request) {
	c.withChange(w, r, func(asked *change) {
		if asked.stop != nil {
			asked.stop()
		}
	})
}

// withChange shows the progress of a change that has begun, after do.
func (c *Console) withChange(w http.ResponseWriter, r *http.Request, do func(*change)) {
	c.changes.mu.Lock()
	var state change
	if asked := c.changes.tried[r.PathValue("id")]; asked != nil {
		do(asked)
		state = *asked
	}
	c.changes.mu.Unlock()
	if state.stop == nil {
		http.NotFound(w, r)
		return
	}
	c.answer(w, r, http.StatusOK, "progress", &state)
}
