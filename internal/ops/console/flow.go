package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/ops/metrics"
	"example.com/twinbox/internal/verify"
)

const (
	historyFor  = 15 * time.Minute
	rateOver    = 5 * time.Second // what a rate is the mean of
	pollTimeout = 4 * time.Second // of one service
	idleFactor  = 5               // how much longer the interval is without viewers
	viewedFor   = 5 * time.Second // how long who asked for the flow is a viewer; a page asks each second
)

// sample is what one service said at a time.
type sample struct {
	metrics.Sample
	at    time.Time
	err   error          // it did not answer
	cause adminapi.Cause // without a token its code and its sentence alone
}

// flow is the system's recent past: one poller per service for any number of viewers.
type flow struct {
	cfg Config

	mu      sync.Mutex
	samples map[string][]sample // by service, oldest first, for the time that rates are made over
	routes  map[route]bool      // remembered: a service that is away, or whose broker is, cannot say them
	frames  []frame             // oldest first
	viewed  time.Time           // when a viewer asked last
}

func (f *flow) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range f.cfg.Services {
		group.Go(func() error { return f.repeat(ctx, func() { f.keep(s.Name, f.take(ctx, s)) }) })
	}
	group.Go(func() error { return f.repeat(ctx, func() { f.publish(time.Now()) }) })
	return group.Wait()
}

// repeat does something at each interval; while there are no viewers it leaves most of them out.
func (f *flow) repeat(ctx context.Context, do func()) error {
	tick := time.NewTicker(f.cfg.Interval)
	defer tick.Stop()
	for n := 0; ; n++ {
		f.mu.Lock()
		viewed := time.Since(f.viewed) < viewedFor
		f.mu.Unlock()
		if viewed || n%idleFactor == 0 {
			do()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// take asks a service how it is.
func (f *flow) take(ctx context.Context, s *client.Service) (taken sample) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var explained adminapi.Cause
	refused := errors.New("there is no token")
	var both sync.WaitGroup
	if !f.cfg.ReadOnly {
		both.Go(func() { explained, refused = client.Call[adminapi.Cause](ctx, s, client.Get("/admin/v1/cause", nil)) })
	}
	taken.Sample, taken.err = metrics.Take(ctx, s)
	both.Wait()
	taken.at = time.Now()
	if said := taken.Ready.Cause; refused == nil {
		taken.cause = explained
	} else if said != nil { // readiness says the most of it
		taken.cause = adminapi.Cause{Code: said.Code, Sentence: said.Sentence, Since: said.Since}
	}
	return taken
}

// keep remembers a sample, and those before it that its rates are made from.
func (f *flow) keep(name string, taken sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.samples[name]
	for len(kept) > 1 && taken.at.Sub(kept[1].at) >= rateOver {
		kept = kept[1:]
	}
	f.samples[name] = append(kept, taken)
	for _, r := range routesOf(name, taken.Metrics) {
		f.routes[r] = true
	}
}

// publish makes the frame of now and adds it to the history.
func (f *flow) publish(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.frames) > 0 && now.Sub(f.frames[0].At) > historyFor {
		f.frames = f.frames[1:]
	}
	f.frames = append(f.frames, f.compose(now))
}

// compose makes the frame of now. Without a report of a verification it shows none.
func (f *flow) compose(now time.Time) frame {
	made := compose(now, f.cfg.Services, f.samples, f.routes)
	report, _ := verify.ReadReport(f.cfg.Dir)
	made.addReport(report)
	return made
}

// view gives a viewer the frames so far, at least one: before the first one a lane for each service with nothing in it.
func (f *flow) view() []frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewed = time.Now()
	if len(f.frames) == 0 {
		return []frame{f.compose(f.viewed)}
	}
	return append([]frame(nil), f.frames...)
}

func (c *Console) showFlow(*http.Request) (content, error) {
	frames := c.flow.view()
	return content{"flow", "Flow", frames[len(frames)-1]}, nil
}

// history is the past as columns, the way charts take it: the times, and for each station rates and what waited.
type history struct {
	At       []int64                  `json:"at"`
	Stations map[string][2][]*float64 `json:"stations"`
}

// showHistory answers what the flow's charts begin with.
func (c *Console) showHistory(w http.ResponseWriter, _ *http.Request) {
	past := c.flow.view()
	h := history{At: make([]int64, len(past)), Stations: map[string][2][]*float64{}}
	for i, f := range past {
		h.At[i] = f.At.Unix()
		f.stations(func(s station) {
			columns, known := h.Stations[s.ID]
			if !known {
				columns = [2][]*float64{make([]*float64, len(past)), make([]*float64, len(past))}
				h.Stations[s.ID] = columns
			}
			columns[0][i], columns[1][i] = s.Rate, s.Waiting
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h) // the browser may be gone
}
