package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
	"example.com/twinbox/ops/metrics"
)

const (
	historyFor  = 15 * time.Minute
	rateOver    = 5 * time.Second // what a rate is the mean of
	pollTimeout = 4 * time.Second // of one service
	idleFactor  = 5               // how much longer the interval is without viewers
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
	services []*client.Service
	readOnly bool
	interval time.Duration

	mu      sync.Mutex
	samples map[string][]sample // by service, oldest first, for the time that rates are made over
	routes  map[route]bool      // remembered: a service that is away, or whose broker is, cannot say them
	frames  []frame             // oldest first
	viewers map[chan frame]bool
}

func newFlow(cfg Config) *flow {
	return &flow{
		services: cfg.Services, readOnly: cfg.ReadOnly, interval: cfg.Interval,
		samples: map[string][]sample{}, routes: map[route]bool{}, viewers: map[chan frame]bool{},
	}
}

func (f *flow) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range f.services {
		group.Go(func() error { return f.repeat(ctx, func() { f.keep(s.Name, f.take(ctx, s)) }) })
	}
	group.Go(func() error { return f.repeat(ctx, func() { f.publish(time.Now()) }) })
	return group.Wait()
}

// repeat does something at each interval; while there are no viewers it leaves most of them out.
func (f *flow) repeat(ctx context.Context, do func()) error {
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for n := 0; ; n++ {
		f.mu.Lock()
		watched := len(f.viewers) > 0
		f.mu.Unlock()
		if watched || n%idleFactor == 0 {
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
	if !f.readOnly {
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

// publish makes the frame of now, adds it to the history and hands it to every viewer. One that is slow misses it.
func (f *flow) publish(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := compose(now, f.services, f.samples, f.routes)
	for len(f.frames) > 0 && now.Sub(f.frames[0].at) > historyFor {
		f.frames = f.frames[1:]
	}
	f.frames = append(f.frames, next)
	for viewer := range f.viewers {
		select {
		case viewer <- next:
		default:
		}
	}
}

// latest is the newest frame; before the first one it has a lane for each service and nothing in it.
func (f *flow) latest() frame {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.frames) == 0 {
		return compose(time.Now(), f.services, f.samples, f.routes)
	}
	return f.frames[len(f.frames)-1]
}

// join gives the frames so far, those to come, and what ends that.
func (f *flow) join() (past []frame, frames <-chan frame, leave func()) {
	viewer := make(chan frame, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers[viewer] = true
	return append([]frame(nil), f.frames...), viewer, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.viewers, viewer)
	}
}

// figures are a frame's for the browser: the numbers for its charts, and what to write where.
type figures struct {
	At       int64                `json:"at"`
	Stations map[string]station   `json:"stations"`
	Lanes    map[string][2]string `json:"lanes"`   // their states and verdicts
	Details  []string             `json:"details"` // of the causes
}

func figuresOf(f frame) figures {
	out := figures{At: f.at.Unix(), Stations: map[string]station{}, Lanes: map[string][2]string{}}
	for _, l := range f.Lanes {
		out.Lanes[l.Service] = [2]string{l.State, l.Verdict}
	}
	for _, c := range f.Causes {
		out.Details = append(out.Details, c.Detail)
	}
	f.stations(func(s station) { out.Stations[s.ID] = s })
	return out
}

// history is the past as columns, the way charts take it: the times, and for each station rates and what waited.
type history struct {
	At       []int64                  `json:"at"`
	Stations map[string][2][]*float64 `json:"stations"`
}

func historyOf(past []frame) history {
	h := history{At: make([]int64, len(past)), Stations: map[string][2][]*float64{}}
	for i, f := range past {
		h.At[i] = f.at.Unix()
		f.stations(func(s station) {
			columns, known := h.Stations[s.ID]
			if !known {
				columns = [2][]*float64{make([]*float64, len(past)), make([]*float64, len(past))}
				h.Stations[s.ID] = columns
			}
			columns[0][i], columns[1][i] = s.Rate, s.Waiting
		})
	}
	return h
}

func (c *Console) showFlow(w http.ResponseWriter, r *http.Request) {
	c.page(w, r, http.StatusOK, "flow", "Flow", c.flow.latest())
}

// viewerTimeout is how long a viewer may take for one message before it is cut off.
const viewerTimeout = 10 * time.Second

// streamFlow sends the past, and then each new frame: its figures, and the sentence and the stations when they have
// changed, as the HTML that takes their place.
func (c *Console) streamFlow(w http.ResponseWriter, r *http.Request) {
	past, frames, leave := c.flow.join()
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	conn := http.NewResponseController(w)
	send := func(name, data string) error {
		// The server's limits are for requests that end, so each message gets its own.
		_ = conn.SetReadDeadline(time.Time{})
		_ = conn.SetWriteDeadline(time.Now().Add(viewerTimeout))
		_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, strings.ReplaceAll(data, "\n", "\ndata: "))
		return errors.Join(err, conn.Flush())
	}
	sendJSON := func(name string, value any) error {
		encoded, err := json.Marshal(value)
		return errors.Join(err, send(name, string(encoded)))
	}
	// replace sends a part of the page as HTML when its key is another one than that of what is shown. What
	// a page showed before it came here may be as old as the page.
	shown := map[string]string{}
	replace := func(part, key string, data any) error {
		if shown[part] == key {
			return nil
		}
		shown[part] = key
		body, err := render(part, data)
		return errors.Join(err, send(part, string(body)))
	}
	err := sendJSON("history", historyOf(past))
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-c.ending:
			return
		case next := <-frames:
			err = errors.Join(replace("lanes", next.layout(), next.Lanes),
				replace("sentence", next.sentences(), next.Causes), sendJSON("figures", figuresOf(next)))
		}
	}
	c.cfg.Log.DebugContext(r.Context(), "viewer lost", "error", err)
}
