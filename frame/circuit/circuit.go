// Package circuit is what a process knows about a server that it depends on: that it is up, or that it has been down
// since when and why. All code that uses the server shares one [Circuit]: callers report errors, one probe finds out
// whether the server is really gone, one log line says so, and one says when it is back. The circuit wakes waiting
// callers at that moment, so no backoff that grew during the outage delays the recovery.
//
// A circuit stops no call. It knows no business and no protocol: the probe does.
package circuit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/failure"
)

// Config of a circuit. Name and Probe are required; zero means default.
type Config struct {
	// Name of the server in log lines, metrics and readiness: "database".
	Name string
	// Probe asks the server for something small, over a connection that it opens for it: one of a pool may be busy, or
	// dead without knowing.
	Probe func(ctx context.Context) error
	// Timeout of a probe; a server counts as down for its silence after two of them. Default 2 s.
	Timeout time.Duration
	// Every is the pause between probes while the server is up and no caller reports an error. Default 5 s.
	Every time.Duration
	// RetryMin and RetryMax bound the pause between probes while it is down; it doubles, with jitter. RetryMax is how
	// late a recovery may be noticed. Default 50 ms and 1 s.
	RetryMin, RetryMax time.Duration
	// OnUp is called when the server is back, before waiting callers are woken: to drop connections that died. Optional.
	OnUp func()
	// Log gets one line when the server goes, one each minute that it stays away, and one when it is back. Default
	// nowhere.
	Log *slog.Logger
	// Registerer takes the metrics dependency_up and dependency_outages_total. Optional.
	Registerer prometheus.Registerer
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Timeout, 2 * time.Second},
		{&c.Every, 5 * time.Second},
		{&c.RetryMin, 50 * time.Millisecond},
		{&c.RetryMax, time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.OnUp == nil {
		c.OnUp = func() {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Circuit is up until a probe has failed. Safe for concurrent use.
type Circuit struct {
	cfg     Config
	metrics *metrics
	asked   chan struct{} // a caller wants a probe now
	saidAt  time.Time     // when the outage was last logged; Run's own

	mu       sync.Mutex
	reports  int // of errors, so far
	answered int // so many of them by a probe that began later and found the server up
	down     *DownError
	settled  chan struct{} // closed when a probe finds it up; a new one for each
	back     chan struct{} // closed when it comes back; a new one for each outage
}

// New returns a circuit that takes the server for up. [Circuit.Run] does the work.
func New(cfg Config) (*Circuit, error) {
	c := &Circuit{
		cfg: cfg.withDefaults(), asked: make(chan struct{}, 1), metrics: newMetrics(cfg.Name),
		settled: make(chan struct{}), back: make(chan struct{}),
	}
	if cfg.Registerer != nil {
		if err := c.metrics.register(cfg.Registerer); err != nil {
			return nil, fmt.Errorf("register metrics of %s: %w", cfg.Name, err)
		}
	}
	return c, nil
}

// Run probes until ctx ends, and then returns nil. While it does not run, nothing changes.
func (c *Circuit) Run(ctx context.Context) error {
	hurried := false
	for retry := c.cfg.RetryMin; ; {
		known := c.reported()
		err := c.probe(ctx)
		if errors.Is(err, errSilent) && !c.Down() {
			err = c.probe(ctx) // this machine may have been too busy to hear the answer
		}
		if ctx.Err() != nil {
			return nil
		}
		c.judge(ctx, err, known)
		wait, asked := c.cfg.Every, c.asked
		if err == nil {
			retry = c.cfg.RetryMin
		} else {
			wait, asked = retry/2+rand.N(retry/2+1), nil // a caller now knows nothing new
			retry = min(2*retry, c.cfg.RetryMax)
		}
		if hurried && err == nil { // complaints about a server that answers do not set the pace
			sleep(ctx, c.cfg.RetryMin, nil)
		}
		hurried = sleep(ctx, wait, asked)
	}
}

// sleep waits and reports whether a wish to probe ended it.
func sleep(ctx context.Context, wait time.Duration, asked <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-asked:
		return true
	case <-ctx.Done():
	}
	return false
}

var errSilent = errors.New("no answer")

func (c *Circuit) probe(ctx context.Context) error {
	cause := fmt.Errorf("%w within %s", errSilent, c.cfg.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, cause)
	defer cancel()
	err := c.cfg.Probe(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// judge draws the conclusion from a probe that began when so many reports were known. One that came later may be of
// something that happened after the server had answered.
func (c *Circuit) judge(ctx context.Context, err error, known int) {
	if err == nil {
		c.rise(ctx, known)
		return
	}
	c.mu.Lock()
	first := c.down == nil
	since := time.Now()
	if !first {
		since = c.down.Since
	}
	c.down = &DownError{Name: c.cfg.Name, Since: since, Err: err}
	c.mu.Unlock()
	code := failure.Examine(err).Code
	switch {
	case first:
		c.metrics.fell()
		c.cfg.Log.ErrorContext(ctx, "dependency is down", "dependency", c.cfg.Name, "code", code, "error", err)
	case time.Since(c.saidAt) >= sayEvery:
		c.cfg.Log.WarnContext(ctx, "dependency is still down", "dependency", c.cfg.Name,
			"for", time.Since(since).Round(time.Second), "code", code, "error", err)
	default:
		return
	}
	c.saidAt = time.Now()
}

// sayEvery is how often an outage that goes on is logged.
const sayEvery = time.Minute

func (c *Circuit) rise(ctx context.Context, known int) {
	c.mu.Lock()
	was := c.down
	c.mu.Unlock()
	if was != nil {
		c.cfg.OnUp()
		c.metrics.rose()
		c.cfg.Log.InfoContext(ctx, "dependency is back", "dependency", c.cfg.Name,
			"after", time.Since(was.Since).Round(time.Millisecond))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.answered = nil, known
	close(c.settled)
	c.settled = make(chan struct{})
	if was != nil {
		close(c.back)
		c.back = make(chan struct{})
	}
}

func (c *Circuit) reported() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reports
}
