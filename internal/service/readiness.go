package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/service/circuit"
)

const (
	StatusReady    = "ready"
	StatusNotReady = "not_ready"
	StatusDraining = "draining"
	StatusOK       = "ok"
	StatusFailing  = "failing"
	StatusWaiting  = "waiting"
)

// Readiness is the body of /readyz.
type Readiness struct {
	Status string        `json:"status"`
	Causes []Cause       `json:"causes,omitzero"` // of the whole report only
	Checks []CheckResult `json:"checks"`
}

// CheckResult is the result of one check. Reason is empty when it passed.
type CheckResult struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Millis int64  `json:"millis"`
}

type check struct {
	name string
	run  Shared[struct{}]
}

func (a *Admin) ready(w http.ResponseWriter, req *http.Request) {
	report, err := a.report(req.URL.Query()["only"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if report.Status != StatusReady {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(report)
}

func (a *Admin) Readiness() Readiness {
	report, _ := a.report(nil)
	return report
}

func (a *Admin) report(only []string) (Readiness, error) {
	checks, err := a.chosen(only)
	report := Readiness{Status: StatusReady, Checks: make([]CheckResult, len(checks))}
	var all sync.WaitGroup
	if len(only) == 0 && len(a.reasons) > 0 {
		all.Go(func() { report.Causes = a.Causes() })
	}
	for i, c := range checks {
		all.Go(func() { report.Checks[i] = c.result() })
	}
	all.Wait()
	if slices.ContainsFunc(report.Checks, func(c CheckResult) bool { return c.Status != StatusOK }) {
		report.Status = StatusNotReady
	}
	select {
	case <-a.cfg.Draining:
		report.Status = StatusDraining
	default:
	}
	return report, err
}

// chosen refuses an unknown name: a misspelt probe must not be green for ever.
func (a *Admin) chosen(names []string) (chosen []*check, err error) {
	var known []string
	for _, c := range a.checks {
		known = append(known, c.name)
		if len(names) == 0 || slices.Contains(names, c.name) {
			chosen = append(chosen, c)
		}
	}
	if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(known, name) }) {
		return nil, fmt.Errorf("no check has this name; there are: %s", strings.Join(known, ", "))
	}
	return chosen, nil
}

// result names each outage once: a check that needs a server which is down only waits.
func (c *check) result() CheckResult {
	began := time.Now()
	_, err := c.run.Get()
	result := CheckResult{Name: c.name, Status: StatusOK, Millis: time.Since(began).Milliseconds()}
	down, isDown := errors.AsType[*circuit.DownError](err)
	switch {
	case isDown && down.Name != c.name:
		result.Status, result.Reason = StatusWaiting, "for "+down.Name
	case err != nil:
		reason := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), c.name+" ")
		result.Status, result.Reason = StatusFailing, failure.Brief(reason)
	}
	return result
}
