package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The states of a readiness report and of a single check.
const (
	StatusReady    = "ready"
	StatusNotReady = "not_ready"
	StatusDraining = "draining"
	StatusOK       = "ok"
	StatusFailing  = "failing"
	StatusWaiting  = "waiting"
)

// Waiting is what a check returns that cannot pass because another one, of that name, does not: the report then shows
// it as waiting and gives the reason at the other one alone.
func Waiting(check string) error { return waitingError(check) }

type waitingError string

func (w waitingError) Error() string { return "for " + string(w) }

// A Readiness is the body of /readyz.
type Readiness struct {
	Status string          `json:"status"`
	Cause  *ReadinessCause `json:"cause,omitempty"` // of the whole report, where the service explains itself // part: ops
	Checks []CheckResult   `json:"checks"`
}

// A CheckResult is what one readiness check said. Reason is empty when it passed.
type CheckResult struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Millis int64  `json:"millis"`
}

type readiness struct {
	timeout  time.Duration
	draining <-chan struct{}

	mu     sync.Mutex
	checks []*check
	causes *Causes // nil: the service does not explain itself // part: ops
}

type check struct {
	name string
	run  func(ctx context.Context) error
	busy chan struct{} // holds one token while the check runs
}

func (r *readiness) add(name string, run func(ctx context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, &check{name: name, run: run, busy: make(chan struct{}, 1)})
}

// ServeHTTP runs the checks side by side, also while draining: an operator may want their reasons then. With
// parameters "only" it runs the checks of these names alone.
func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	checks, err := r.chosen(req.URL.Query()["only"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	report := r.report(req.Context(), checks)
	if !req.URL.Query().Has("only") { // part: ops, begin
		report.Cause = r.cause(req.Context())
	} // part: ops, end
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if report.Status != StatusReady {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(report)
}

// chosen are the checks of the names, or all. A name that no check has is an error: a probe that was misspelt must not
// be green for ever.
func (r *readiness) chosen(names []string) ([]*check, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(names) == 0 {
		return r.checks, nil
	}
	var chosen []*check
	known := make([]string, len(r.checks))
	for i, c := range r.checks {
		known[i] = c.name
		if slices.Contains(names, c.name) {
			chosen = append(chosen, c)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no check has this name; there are: %s", strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

func (r *readiness) report(ctx context.Context, checks []*check) Readiness {
	report := Readiness{Status: StatusReady, Checks: make([]CheckResult, len(checks))}
	var all sync.WaitGroup
	for i, c := range checks {
		all.Go(func() { report.Checks[i] = c.result(ctx, r.timeout) })
	}
	all.Wait()
	for _, result := range report.Checks {
		if result.Status != StatusOK {
			report.Status = StatusNotReady
		}
	}
	select {
	case <-r.draining:
		report.Status = StatusDraining
	default:
	}
	return report
}

var errStillRunning = errors.New("still running since an earlier request")

func (c *check) result(ctx context.Context, timeout time.Duration) CheckResult {
	began := time.Now()
	err := c.bounded(ctx, timeout)
	result := CheckResult{Name: c.name, Status: StatusOK, Millis: time.Since(began).Milliseconds()}
	if err != nil {
		result.Status, result.Reason = StatusFailing, oneLine(err.Error())
	}
	if _, waits := errors.AsType[waitingError](err); waits {
		result.Status = StatusWaiting
	}
	return result
}

// bounded runs the check in a goroutine of its own, which outlives the answer when the check ignores its context. The
// token keeps such checks from piling up, one for every probe. It is given back before the answer: a client that asks
// again at once must not find the check running. A second request waits for the token: two requests at a time make no
// check fail.
func (c *check) bounded(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("no answer within "+timeout.String()))
	defer cancel()
	select {
	case c.busy <- struct{}{}:
	case <-ctx.Done():
		return errStillRunning
	}
	ended := make(chan error, 1)
	go func() {
		err := protect(ctx, c.run)
		<-c.busy
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// oneLine shortens an error's text to what fits an alert. It leaves out the middle: what was wanted stands at the
// beginning of an error, and its cause at the end.
func oneLine(text string) string {
	const longest = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longest {
		return text
	}
	begin, end := text[:longest/2], text[len(text)-longest/2:]
	return strings.ToValidUTF8(begin, "") + " ... " + strings.ToValidUTF8(end, "")
}
