package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/verify"
)

const (
	rateOver    = 5 * time.Second // what a rate is the mean of
	pollTimeout = 8 * time.Second // of one service; with a silent database it answers after 4 s
	idleFactor  = 5               // how much longer the interval is without viewers
	viewedFor   = 5 * time.Second // how long someone who asked for the flow is a viewer; a page asks each second
	answerAge   = 20 * time.Second
)

type sample struct {
	adminapi.Stations
	at  time.Time
	err error
}

func (s sample) find(kind, name string) (found adminapi.Station) {
	for _, one := range s.Stations.Stations {
		if one.Kind == kind && one.Name == name {
			found = one
		}
	}
	return found
}

type watched struct {
	*client.Service
	known adminapi.Stations // its last answer: a service that is away keeps its stations
	past  []sample          // of the charts' steps, oldest first
}

type flow struct {
	cfg Config

	mu       sync.Mutex
	services []*watched
	ended    []ended   // newest first
	viewed   time.Time // when a viewer asked last
}

type ended struct {
	Service string
	service.Cause
	Until time.Time
}

const keptEnded = 20

func newFlow(cfg Config) *flow {
	f := &flow{cfg: cfg}
	for _, s := range cfg.Services {
		f.services = append(f.services, &watched{Service: s})
	}
	return f
}

func (f *flow) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range f.services {
		group.Go(func() error {
			tick := time.NewTicker(f.cfg.Interval)
			defer tick.Stop()
			for n := 0; ; n++ {
				f.mu.Lock()
				isViewed := time.Since(f.viewed) < viewedFor
				f.mu.Unlock()
				if isViewed || n%idleFactor == 0 {
					f.keep(w, w.ask(ctx))
				}
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
			}
		})
	}
	return group.Wait()
}

func (w *watched) ask(ctx context.Context) (taken sample) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	taken.Stations, taken.err = client.Call[adminapi.Stations](ctx, w.Service, client.Get(adminapi.StationsPath))
	taken.at = time.Now()
	return taken
}

func (f *flow) keep(w *watched, taken sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if taken.err == nil {
		f.end(w, taken)
		w.known = taken.Stations
	}
	w.past = append(w.past, taken)
	for stepOf(taken.at)-stepOf(w.past[0].at) >= chartSteps {
		w.past = w.past[1:]
	}
}

// environment is empty before the service has answered.
func (f *flow) environment(service string) (name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.services {
		if w.Name == service {
			name = w.known.Environment
		}
	}
	return name
}

func (f *flow) end(w *watched, now sample) {
	before := w.last()
	for _, was := range before.Causes {
		isSame := func(c service.Cause) bool { return c.Code == was.Code && c.Station == was.Station }
		if before.err == nil && !slices.ContainsFunc(now.Causes, isSame) {
			f.ended = append([]ended{{w.Name, was, now.at}}, f.ended[:min(len(f.ended), keptEnded-1)]...)
		}
	}
}

func (w *watched) last() (newest sample) {
	if n := len(w.past); n > 0 {
		newest = w.past[n-1]
	}
	return newest
}

// before returns the sample that rates are made over.
func (w *watched) before(newest sample) (before sample) {
	for _, before = range slices.Backward(w.past) {
		if newest.at.Sub(before.at) >= rateOver {
			break
		}
	}
	return before
}

func (w *watched) answers(now time.Time) bool {
	last := w.last()
	return last.err == nil && now.Sub(last.at) < answerAge
}

// growth is per second. A counter that fell began anew.
func growth(old, cur *float64, seconds float64) *float64 {
	switch {
	case old == nil || cur == nil || seconds <= 0:
		return nil
	case *cur < *old:
		return new(*cur / seconds)
	}
	return new((*cur - *old) / seconds)
}

// Nil figures are unknown.
type station struct {
	adminapi.Station
	ID            string
	Rate, Refused *float64 // per second
	Spark         string   // the path of its rate
}

type topic struct {
	station
	Inboxes []station
}

type lane struct {
	Service, Verified           string
	State                       adminapi.StationState
	Metrics, API, OperationsAPI string // addresses
	Stations                    []station
	Topics                      []topic
}

func (f *flow) station(w *watched, s adminapi.Station, now time.Time) station {
	shown := station{Station: s, ID: w.Name + "/" + s.Kind + "/" + s.Name}
	shown.State = cmp.Or(s.State, adminapi.Unknown) // no service has named it
	if !w.answers(now) {
		shown.State, shown.Note, shown.Waiting, shown.AgeSeconds = adminapi.Unknown, "no answer", nil, nil
		return shown
	}
	before := w.before(w.last())
	first, seconds := before.find(s.Kind, s.Name), w.last().at.Sub(before.at).Seconds()
	shown.Rate, shown.Refused = growth(first.Passed, s.Passed, seconds), growth(first.Refused, s.Refused, seconds)
	rates := w.values(s, now, passed)
	shown.Spark = drawPath(rates, max(1, top(rates)))
	return shown
}

// A topic is in the lane of its writer, or of its first reader while no service has named it.
func (f *flow) lanes(now time.Time, found verify.Report) (all []lane) {
	homes := map[string]string{}
	for _, kind := range []string{"topic", "inbox"} {
		for _, w := range f.services {
			for _, s := range w.known.Stations {
				if name := cmp.Or(s.Topic, s.Name); s.Kind == kind && homes[name] == "" {
					homes[name] = w.Name
				}
			}
		}
	}
	for _, w := range f.services {
		l := lane{
			Service: w.Name, State: adminapi.Well, Metrics: w.URL("/metrics"), OperationsAPI: w.URL(adminapi.DocumentPath),
		}
		for _, s := range w.known.Stations {
			if s.Kind == "http" {
				l.API = w.URL("/openapi.json")
			}
			if s.Kind != "topic" && s.Kind != "inbox" {
				l.Stations = append(l.Stations, f.station(w, s, now))
			}
		}
		switch last := w.last(); {
		case !w.answers(now):
			l.State = adminapi.Unknown
		case last.Status != service.StatusReady:
			l.State = adminapi.Stopped
		}
		for _, name := range slices.Sorted(maps.Keys(homes)) {
			if homes[name] == w.Name {
				l.Topics = append(l.Topics, f.topic(w, name, now))
			}
		}
		if f.cfg.Dir != "" {
			l.Verified = "not verified: twinbox verify"
		}
		if verdict := found[w.Name]; verdict != nil {
			l.Verified = "verified " + adminapi.Age(now.Sub(verdict.At)) + " ago: " + verdict.Summary()
		}
		all = append(all, l)
	}
	return all
}

// Records that its slowest reader has not read wait on the topic; their number is unknown where a reader is.
func (f *flow) topic(home *watched, name string, now time.Time) topic {
	written := home.last().find("topic", name)
	written.Kind, written.Name = "topic", name
	t := topic{station: f.station(home, written, now)}
	for _, w := range f.services {
		for _, s := range w.known.Stations {
			if s.Kind == "inbox" && s.Topic == name {
				t.Inboxes = append(t.Inboxes, f.station(w, s, now))
			}
		}
	}
	for i, s := range t.Inboxes {
		if i == 0 || s.Waiting == nil || t.Waiting != nil && *s.Waiting > *t.Waiting {
			t.Waiting, t.AgeSeconds = s.Waiting, s.AgeSeconds
		}
	}
	return t
}

type cause struct {
	service.Cause
	Services []string
	Effects  []effect // for each of them
	State    adminapi.StationState
	Verb     string // of the button that ends it
	Consumer string
	Page     string // of this console, that shows more
}

type effect struct{ Service, Means string }

var remedies = map[string]struct{ verb, page string }{
	"consumer_paused": {"resume-consumer", ""}, "relay_paused": {"resume-relay", ""}, "keys_parked": {"release", ""},
	"dead_letters": {"replay", "/dead-letters"}, "waits_for_gap": {"", "/dead-letters"},
	"mail_uncertain": {"", "/mails?state=uncertain"}, "mail_failed": {"", "/mails?state=failed"},
	"database_went_back": {"", "/lost"},
}

// The worst is first in each service. A server that several services miss is one cause.
func (f *flow) causes(now time.Time, found verify.Report) (all []cause) {
	add := func(name string, state adminapi.StationState, c service.Cause) {
		i := slices.IndexFunc(all, func(of cause) bool {
			return c.Code == of.Code && c.What == of.What && c.Station == of.Station
		})
		if i < 0 {
			remedy := remedies[c.Code]
			_, consumer, _ := strings.Cut(c.Station, "/")
			all = append(all, cause{Cause: c, State: state, Verb: remedy.verb, Page: remedy.page, Consumer: consumer})
			i = len(all) - 1
		}
		all[i].Services = append(all[i].Services, name)
		all[i].Effects = append(all[i].Effects, effect{name, c.Means})
	}
	for _, w := range f.services {
		last := w.last()
		switch {
		case last.at.IsZero():
			add(w.Name, adminapi.Unknown, service.Cause{Code: "asking", What: "Asking the service."})
		case !w.answers(now):
			c := service.Cause{
				Code: "no_answer", What: "The service does not answer.", Means: "It is not known whether events wait.",
				Do: "Look whether the service runs, and whether this console reaches it.",
			}
			if last.err != nil {
				c.Details = last.err.Error()
			}
			add(w.Name, adminapi.Unknown, c)
		}
		for _, c := range last.Causes {
			if w.answers(now) {
				add(w.Name, stateOf(c), c)
			}
		}
		if verdict := found[w.Name]; verdict != nil && !verdict.Clean() {
			add(w.Name, adminapi.Stopped, CauseOf(verdict))
		}
	}
	slices.SortStableFunc(all, func(a, b cause) int { return rank(a.State) - rank(b.State) })
	return all
}

// CauseOf returns the cause of a verdict with findings.
func CauseOf(verdict *verify.Verdict) service.Cause {
	return service.Cause{
		Code: "verification_failed", What: "The last verification found " + verdict.Summary() + ".", Since: verdict.At,
		Means: "Events may be lost, doubled, altered or out of order.", Do: "Verify again, and follow the findings.",
		Command: "twinbox verify",
	}
}

func stateOf(c service.Cause) adminapi.StationState {
	switch {
	case c.Stops:
		return adminapi.Stopped
	case c.Code == service.CodeUnknown:
		return adminapi.Unknown
	}
	return adminapi.Watch
}

// rank treats an unknown state as bad.
func rank(state adminapi.StationState) int {
	return slices.Index([]adminapi.StationState{adminapi.Stopped, adminapi.Unknown, adminapi.Watch, adminapi.Well}, state)
}

type frame struct {
	Causes []cause
	Lanes  []lane
	Charts []chart
	Ended  []ended
	Now    time.Time
	// Operate adds the viewer's actions.
	Operate bool
}

// Headline is for screen readers. It changes only when a cause begins or ends.
func (f frame) Headline() string {
	var all []string
	for _, c := range f.Causes {
		all = append(all, strings.Join(c.Services, ", ")+": "+strings.ReplaceAll(c.Code, "_", " ")+".")
	}
	return cmp.Or(strings.Join(all, " "), "All is well.")
}

// ChartsEnd is the Unix time of the charts' last step.
func (f frame) ChartsEnd() int64 { return int64(stepOf(f.Now)) * int64(chartStep.Seconds()) }

func (f *flow) view(now time.Time) frame {
	var found verify.Report
	if f.cfg.Dir != "" {
		found, _ = verify.ReadReport(f.cfg.Dir) // without one the lanes have no verdict
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewed = now
	return frame{
		Causes: f.causes(now, found), Lanes: f.lanes(now, found), Charts: f.charts(now), Ended: slices.Clone(f.ended),
		Now: now,
	}
}

func (c *Console) showFlow(r *http.Request) (content, error) {
	shown := c.flow.view(time.Now())
	shown.Operate = c.mayOperate(r)
	return content{"flow", "Flow", shown}, nil
}
