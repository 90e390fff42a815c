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
)

// States of a report and of a check.
const (
	StatusReady    = "ready"
	StatusNotReady = "not_ready"
	StatusDraining = "draining"
	StatusOK       = "ok"
	StatusFailing  = "failing"
	StatusWaiting  = "waiting"
)

// Waiting is the error of a check that cannot pass before the named one.
func Waiting(check string) error { return waitingError(check) }

type waitingError string

func (w waitingError) Error() string { return "for " + string(w) }

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
	var report Readiness
	if names := req.URL.Query()["only"]; len(names) == 0 {
		report = a.Readiness()
	} else if checks, err := a.chosen(names); err == nil {
		report = a.examine(checks)
	} else {
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

// Readiness returns the whole report.
func (a *Admin) Readiness() Readiness {
	checks, _ := a.chosen(nil)
	var causes []Cause
	var finding sync.WaitGroup
	if len(a.reasons) > 0 {
		finding.Go(func() { causes = a.Causes() })
	}
	report := a.examine(checks)
	finding.Wait()
	report.Causes = causes
	return report
}

func (a *Admin) examine(checks []*check) Readiness {
	report := Readiness{Status: StatusReady, Checks: make([]CheckResult, len(checks))}
	var all sync.WaitGroup
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
	return report
}

// An unknown name is an error: a misspelt probe must not be green for ever.
func (a *Admin) chosen(names []string) (chosen []*check, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
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

func (c *check) result() CheckResult {
	began := time.Now()
	_, err := c.run.Get()
	result := CheckResult{Name: c.name, Status: StatusOK, Millis: time.Since(began).Milliseconds()}
	if err != nil {
		result.Status, result.Reason = StatusFailing, oneLine(err.Error())
	}
	if _, waits := errors.AsType[waitingError](err); waits {
		result.Status = StatusWaiting
	}
	return result
}

// oneLine cuts the middle: an error ends with its cause.
func oneLine(text string) string {
	const longest = 400
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longest {
		return text
	}
	begin, end := text[:longest/2], text[len(text)-longest/2:]
	return strings.ToValidUTF8(begin, "") + " ... " + strings.ToValidUTF8(end, "")
}
