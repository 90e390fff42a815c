package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
	"example.com/twinbox/ops/metrics"
)

const (
	historyFor  = 15 * time.Minute
	rateOver    = 5 * time.Second // what a rate is the mean of
	pollTimeout = 4 * time.Second // of one service, whose own limit for a check is 2 s
	idleFactor  = 5               // how much longer the interval is without viewers
)

// flowMetrics are the names that are kept; the others are some hundred lines a second.
var flowMetrics = map[string]bool{
	"http_server_requests_total": true, "http_server_requests_in_flight": true,
	"outbox_events_added_total": true, "outbox_relay_lag_events": true, "outbox_relay_oldest_unpublished_seconds": true,
	"outbox_relay_published_total": true, "outbox_relay_has_leader": true, "outbox_relay_held_events": true,
	"outbox_relay_parked_keys":   true,
	"kafka_consumer_lag_records": true, "kafka_consumer_lag_seconds": true,
	"inbox_messages_total": true, "dead_letters_waiting": true,
	"lease_rows": true, "lease_oldest_seconds": true, "lease_attempts_total": true,
	"verify_findings": true, "verify_age_seconds": true,
}

// sample is what one service said at a time.
type sample struct {
	at      time.Time
	err     error // it did not answer
	metrics metrics.Set
	ready   service.Readiness
	cause   adminapi.Cause // without a token its code and its sentence alone
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
	awake   chan struct{} // closed and made anew when a viewer comes
}

func newFlow(cfg Config) *flow {
	return &flow{
		services: cfg.Services, readOnly: cfg.ReadOnly, interval: cfg.Interval,
		samples: map[string][]sample{}, routes: map[route]bool{}, viewers: map[chan frame]bool{}, awake: make(chan struct{}),
	}
}

func (f *flow) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range f.services {
		group.Go(func() error {
			for ctx.Err() == nil {
				taken := f.take(ctx, s)
				f.keep(s.Name, taken)
				f.pause(ctx)
			}
			return nil
		})
	}
	group.Go(func() error {
		for ctx.Err() == nil {
			f.publish(time.Now())
			f.pause(ctx)
		}
		return nil
	})
	return group.Wait()
}

// pause waits for the next look: a viewer who comes does not wait for the long interval to end.
func (f *flow) pause(ctx context.Context) {
	f.mu.Lock()
	interval, awake := f.interval, f.awake
	if len(f.viewers) == 0 {
		interval *= idleFactor
	} else {
		awake = nil
	}
	f.mu.Unlock()
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-awake:
	}
}

// take asks a service how it is.
func (f *flow) take(ctx context.Context, s *client.Service) sample {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	taken := sample{}
	var group errgroup.Group
	group.Go(func() error {
		return s.Look(ctx, "/metrics", func(body io.Reader) (err error) {
			taken.metrics, err = metrics.Read(body, flowMetrics)
			return err
		})
	})
	group.Go(func() error {
		return s.Look(ctx, "/readyz", func(body io.Reader) error {
			if err := json.NewDecoder(io.LimitReader(body, metrics.MaxBytes)).Decode(&taken.ready); err != nil {
				return fmt.Errorf("read readiness: %w", err)
			}
			return nil
		})
	})
	var explained *adminapi.Cause
	if !f.readOnly {
		group.Go(func() error {
			if said, err := client.Call[adminapi.Cause](ctx, s, client.Get("/admin/v1/cause", nil)); err == nil {
				explained = &said
			}
			return nil // readiness says the most of it
		})
	}
	taken.err = group.Wait()
	taken.at = time.Now()
	if said := taken.ready.Cause; explained != nil {
		taken.cause = *explained
	} else if said != nil {
		taken.cause = adminapi.Cause{Code: said.Code, Sentence: said.Sentence, Since: &said.Since}
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
	for _, r := range routesOf(name, taken.metrics) {
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

// latest is the newest frame; before the first sample it has a lane for each service and nothing in it.
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
	close(f.awake)
	f.awake = make(chan struct{})
	return append([]frame(nil), f.frames...), viewer, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.viewers, viewer)
	}
}
