// Package circuit knows whether a server is up: users report errors, and a probe decides. It logs each outage, and
// wakes waiting callers at its end. It stops no call.
package circuit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/twinbox/internal/failure"
)

// Config configures a [Circuit]. Name, Probe and Log are required.
type Config struct {
	Name string // of the server, such as "database"
	// Probe opens a connection: one of a pool may be busy or dead.
	Probe func(ctx context.Context) error
	// Timeout of a probe. A server that misses two is down. Default 2 s.
	Timeout time.Duration
	// Every is the pause between probes of a server that is up. Default 5 s.
	Every time.Duration
	// RetryMin and RetryMax bound the doubling pause during an outage. Default 50 ms and 800 ms.
	RetryMin, RetryMax time.Duration
	// OnUp drops dead connections before waiting callers are woken. Optional.
	OnUp       func()
	Log        *slog.Logger
	Registerer prometheus.Registerer // optional
}

// Circuit counts a server as up until a probe has failed.
type Circuit struct {
	cfg      Config
	up       prometheus.Gauge
	outages  prometheus.Counter
	probeNow chan struct{}
	loggedAt time.Time

	mu    sync.Mutex
	down  *DownError
	wasUp bool
	back  chan struct{} // closed at the end of an outage; a new one for each
}

// New panics if the Registerer has a circuit of that name.
func New(cfg Config) *Circuit {
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Second)
	cfg.Every = cmp.Or(cfg.Every, 5*time.Second)
	cfg.RetryMin, cfg.RetryMax = cmp.Or(cfg.RetryMin, 50*time.Millisecond), cmp.Or(cfg.RetryMax, 800*time.Millisecond)
	cfg.Log = cfg.Log.With("dependency", cfg.Name)
	metrics, labels := promauto.With(cfg.Registerer), prometheus.Labels{"dependency": cfg.Name}
	c := &Circuit{
		cfg: cfg, probeNow: make(chan struct{}, 1), back: make(chan struct{}),
		up: metrics.NewGauge(prometheus.GaugeOpts{
			Name: "dependency_up", Help: "1 while the server answers, 0 while it is down.", ConstLabels: labels,
		}),
		outages: metrics.NewCounter(prometheus.CounterOpts{
			Name: "dependency_outages_total", Help: "How often the server went down.", ConstLabels: labels,
		}),
	}
	c.up.Set(1)
	return c
}

// Run probes until ctx ends and then returns nil.
func (c *Circuit) Run(ctx context.Context) error {
	pauses := failure.Backoff{Min: c.cfg.RetryMin, Max: c.cfg.RetryMax}
	for {
		err := c.probe(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.conclude(ctx, err)
		pause, probeNow := c.cfg.Every, c.probeNow
		if err != nil {
			pause, probeNow = pauses.Next(), nil
		} else {
			pauses.Reset()
			_ = failure.Sleep(ctx, c.cfg.RetryMin) // reports do not set the pace
		}
		select {
		case <-time.After(pause):
		case <-probeNow:
		case <-ctx.Done():
		}
	}
}

var errSilent = errors.New("no answer")

// probe asks a silent server twice: a busy machine may miss the first answer.
func (c *Circuit) probe(ctx context.Context) error {
	err := c.askServer(ctx)
	if errors.Is(err, errSilent) && !c.Down() {
		err = c.askServer(ctx)
	}
	return err
}

func (c *Circuit) askServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	err := c.cfg.Probe(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w within %s: %w", errSilent, c.cfg.Timeout, err)
	}
	return err
}

const logEvery = time.Minute

func (c *Circuit) conclude(ctx context.Context, err error) {
	before, log := c.down, c.cfg.Log
	var now *DownError
	if err != nil {
		now = &DownError{Name: c.cfg.Name, Since: time.Now(), Err: err}
		log = log.With("code", failure.Examine(err).Code, "error", err)
	}
	switch {
	case before == nil && now != nil:
		c.up.Set(0)
		c.outages.Inc()
		c.loggedAt = now.Since
		log.ErrorContext(ctx, "dependency is down")
	case now != nil:
		now.Since = before.Since
		if time.Since(c.loggedAt) >= logEvery {
			c.loggedAt = time.Now()
			log.WarnContext(ctx, "dependency is still down", "for", time.Since(now.Since).Round(time.Second))
		}
	case before != nil:
		c.up.Set(1)
		if c.cfg.OnUp != nil {
			c.cfg.OnUp()
		}
		log.WarnContext(ctx, "dependency is back", "after", time.Since(before.Since).Round(time.Millisecond))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = now
	c.wasUp = c.wasUp || now == nil
	if before != nil && now == nil {
		close(c.back)
		c.back = make(chan struct{})
	}
}

// DownError reports that a server is down. It is always transient.
type DownError struct {
	Name  string
	Since time.Time
	Err   error
}

func (e *DownError) Error() string { return fmt.Sprintf("%s is down: %v", e.Name, e.Err) }

func (e *DownError) Unwrap() error { return failure.AsTransient(e.Err) }

// Report takes a call's error. If the server may have caused it, the next probe begins immediately.
func (c *Circuit) Report(err error) {
	if err != nil && isSuspicious(err) {
		c.Suspect()
	}
}

// Suspect begins the next probe immediately.
func (c *Circuit) Suspect() {
	select {
	case c.probeNow <- struct{}{}:
	default:
	}
}

// answers are the codes of a database that works.
var answers = []string{"marked_transient", "sql_26", "sql_40", "sql_55", "sql_72"}

func isSuspicious(err error) bool {
	v := failure.Examine(err)
	number, isBrokers := strings.CutPrefix(v.Code, "kafka_")
	isAnswer := isBrokers && strings.Trim(number, "0123456789") == "" ||
		slices.ContainsFunc(answers, func(prefix string) bool { return strings.HasPrefix(v.Code, prefix) })
	return v.Class == failure.Transient && !isAnswer
}

// Err returns a [*DownError] during an outage, else nil. It sends no probe.
func (c *Circuit) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		return nil
	}
	return c.down
}

func (c *Circuit) Down() bool { return c.Err() != nil }

// Ready is Err, and an error before the first probe.
func (c *Circuit) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down != nil:
		return c.down
	case !c.wasUp:
		return errors.New("not reached yet")
	}
	return nil
}

// Await returns nil when the server is up, or the cause of ctx's end.
func (c *Circuit) Await(ctx context.Context) error {
	for c.Down() {
		if err := c.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// Pause waits for d, until the server comes back, or until ctx ends: then it returns the cause.
func (c *Circuit) Pause(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	back := c.back
	c.mu.Unlock()
	select {
	case <-time.After(d):
	case <-back:
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", c.cfg.Name, context.Cause(ctx))
	}
	return nil
}
