package service

import (
	"context"
	"time"
)

// CodeAllWell is the code of a [Cause] that is none: nothing waits that should not.
const CodeAllWell = "all_well"

// A Cause is why a service waits, as one sentence.
type Cause struct {
	Code     string    // stable, such as dependency_down
	Sentence string    // for people; nothing secret, and no values of theirs
	Since    time.Time // zero: not known
	Figures  map[string]float64
	Command  string    // what shows more of it or helps; optional
	At       time.Time // when it was worked out
}

// Well reports that nothing waits that should not.
func (c Cause) Well() bool { return c.Code == CodeAllWell }

// causeAge is how old a cause may be: any number of people who look on ask the service once.
const (
	causeAge     = 500 * time.Millisecond
	causeTimeout = 2 * time.Second
)

// Causes works a service's cause out when it is asked for. The zero value is not usable.
type Causes struct {
	find func(ctx context.Context) Cause

	turn chan struct{} // holds a token while a call works it out
	last Cause
}

// NewCauses asks find, which must return soon after its context has ended.
func NewCauses(find func(ctx context.Context) Cause) *Causes {
	return &Causes{find: find, turn: make(chan struct{}, 1)}
}

// Cause is the present one, at most half a second old. Calls at the same time wait for one answer.
func (c *Causes) Cause(ctx context.Context) Cause {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if time.Since(c.last.At) < causeAge {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), causeTimeout) // the answer is others' as well
	defer cancel()
	c.last = c.find(ctx)
	c.last.At = time.Now().UTC()
	return c.last
}

// Explain adds why the service waits, or that all is well, to the readiness report.
func (a *Admin) Explain(causes *Causes) {
	a.ready.mu.Lock()
	defer a.ready.mu.Unlock()
	a.ready.causes = causes
}

// A ReadinessCause is why the service waits, or that all is well: what [Admin.Explain] was given. A service may wait
// and be ready, and the other way round.
type ReadinessCause struct {
	Code     string    `json:"code"`
	Sentence string    `json:"sentence"`
	Since    time.Time `json:"since,omitzero"`
}

func (r *readiness) cause(ctx context.Context) *ReadinessCause {
	r.mu.Lock()
	causes := r.causes
	r.mu.Unlock()
	if causes == nil {
		return nil
	}
	found := causes.Cause(ctx)
	return &ReadinessCause{Code: found.Code, Sentence: oneLine(found.Sentence), Since: found.Since}
}
