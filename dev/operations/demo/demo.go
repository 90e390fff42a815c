// Package demo has people sign up on a running system, breaks parts, shows where the events are, and ends with the
// services' verdict. Only it knows this business.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/verify"
)

type Config struct {
	Services []*client.Service
	API      string // host:port
	// Verify returns the verdicts on the events since a time.
	Verify func(ctx context.Context, since time.Time) (verify.Report, error)
	// Faults happen one after the other, at even distances.
	Faults []Fault
	// Rate is sign-ups a second, for the time For.
	Rate float64
	For  time.Duration
	// Settle bounds the wait for the success of a sign-up, and for the last events.
	Settle time.Duration
	Out    io.Writer
}

type Fault struct {
	Name string
	What string // in a sentence's middle: "kill -9, and another process takes its place"
	// Cause waits until the fault is over, and describes the result.
	Cause func(ctx context.Context, run *Run) (string, error)
}

type Run struct {
	cfg    Config
	people *people
	began  time.Time
	told   map[string]string // reported causes, by service
	fail   func(error)

	mu    sync.Mutex
	users map[int]string
}

// Play returns nil when every user has a profile, and all services report that no event is lost, doubled, altered,
// invented or reordered. When ctx ends it signs up no more users, and judges the events so far.
func Play(ctx context.Context, cfg Config) error {
	acting, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := &Run{cfg: cfg, people: newPeople(cfg.API), began: time.Now(), fail: fail, users: map[int]string{}}
	defer r.people.http.CloseIdleConnections()
	whole := context.WithoutCancel(ctx)
	watched, watch := context.WithCancel(whole)
	var watching, faults sync.WaitGroup
	watching.Go(func() {
		for failure.Sleep(watched, tellEvery) == nil {
			r.tell(look(watched, cfg.Services))
		}
	})
	faults.Go(func() { r.causeAll(acting) })
	r.actAll(acting)
	faults.Wait()
	err := context.Cause(acting)
	if err == nil || errors.Is(err, context.Cause(ctx)) {
		err = r.settle(whole)
	}
	watch()
	watching.Wait()
	if err != nil {
		return err
	}
	r.tell(look(whole, cfg.Services))
	return r.judge(whole)
}

func (r *Run) signedUp() map[int]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.users)
}

const underWay = 64

func (r *Run) actAll(ctx context.Context) {
	loading, loaded := context.WithTimeout(ctx, r.cfg.For)
	defer loaded()
	tick := time.NewTicker(max(time.Duration(float64(time.Second)/r.cfg.Rate), time.Microsecond))
	defer tick.Stop()
	var all errgroup.Group
	all.SetLimit(underWay)
	defer func() { _ = all.Wait() }()
	for n := 0; ; n++ {
		all.Go(func() error {
			r.act(context.WithoutCancel(ctx), n)
			return nil
		})
		select {
		case <-tick.C:
		case <-loading.Done():
			return
		}
	}
}

// act repeats: the answer of an accepted request may be lost.
func (r *Run) act(ctx context.Context, n int) {
	again := failure.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for end := time.Now().Add(r.cfg.Settle); ; _ = failure.Sleep(ctx, again.Next()) {
		id, err := r.people.signUp(ctx, n)
		switch {
		case err == nil:
			r.mu.Lock()
			defer r.mu.Unlock()
			r.users[n] = id
			return
		case time.Now().After(end):
			r.fail(fmt.Errorf("no success for %s: %w", r.cfg.Settle, err))
			return
		}
	}
}

func (r *Run) causeAll(ctx context.Context) {
	for i, f := range r.cfg.Faults {
		at := r.began.Add(r.cfg.For * time.Duration(i+1) / time.Duration(len(r.cfg.Faults)+1))
		if failure.Sleep(ctx, time.Until(at)) != nil {
			return
		}
		r.say("%-18s %s", f.Name, f.What)
		came, err := f.Cause(ctx, r)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.fail(fmt.Errorf("%s: %w", f.Name, err))
			return
		}
		r.say("%-18s %s", "", came)
	}
}

const (
	tellEvery  = 2 * time.Second
	lookEvery  = 250 * time.Millisecond
	settledFor = 1500 * time.Millisecond // longer than a figure may be old
)

func (r *Run) settle(ctx context.Context) error {
	began, idle := time.Now(), time.Time{}
	for ; ; _ = failure.Sleep(ctx, lookEvery) {
		now := look(ctx, r.cfg.Services)
		switch {
		case !now.settled():
			idle = time.Time{}
		case idle.IsZero():
			idle = time.Now()
		case time.Since(idle) >= settledFor:
			return nil
		}
		if time.Since(began) > r.cfg.Settle {
			return fmt.Errorf("after %s there is still something that waits: %s", r.cfg.Settle, &now)
		}
	}
}

// tell writes a second line when a service waits for a new reason.
func (r *Run) tell(now standing) {
	told := map[string]string{}
	for _, c := range now.causes {
		if told[c.service] = c.code; r.told[c.service] != c.code {
			r.say("%.160s", c)
		}
	}
	r.told = told
	r.mu.Lock()
	signedUp := len(r.users)
	r.mu.Unlock()
	line := fmt.Sprintf("%d signed up, %s", signedUp, &now)
	if now.unsure > 0 {
		line += fmt.Sprintf(", %d mails uncertain", now.unsure)
	}
	if now.dead > 0 {
		line += fmt.Sprintf(", %d dead letters", now.dead)
	}
	r.say("%s", line)
}

func (r *Run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf("%6.1f s  "+format, append([]any{time.Since(r.began).Seconds()}, args...)...)
	_, _ = fmt.Fprintln(r.cfg.Out, strings.TrimRight(line, " "))
}
