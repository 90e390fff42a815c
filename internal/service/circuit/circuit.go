// Package circuit is what a process knows about a server that it depends on: that it is up, or that it has been down
// since when and why. All code that uses the server shares one [Circuit]: callers report errors, one probe finds out
// whether the server is really gone, one log line says so, and one says when it is back. The circuit wakes waiting
// callers at that moment, so no backoff that grew during the outage delays the recovery.
//
// A circuit stops no call. It knows no business and no protocol: the probe does.
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

// Config of a circuit. Name, Probe and Log are required; zero means default.
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
	// RetryMin and RetryMax bound the pause between probes while it is down; it doubles, with a fifth of jitter. RetryMax
	// and that fifth are how late a recovery may be noticed. Default 50 ms and 800 ms.
	RetryMin, RetryMax time.Duration
	// OnUp is called when the server is back, before waiting callers are woken: to drop connections that died. Optional.
	OnUp func()
	// Log gets one line when the server goes, one each minute that it stays away, and one when it is back.
	Log *slog.Logger
	// Registerer takes the metrics dependency_up and dependency_outages_total. Optional.
	Registerer prometheus.Registerer
}

// Circuit is up until a probe has failed. Safe for concurrent use.
type Circuit struct {
	cfg     Config
	up      prometheus.Gauge
	outages prometheus.Counter
	asked   chan struct{} // a caller wants a probe now
	saidAt  time.Time     // when the outage was last logged; Run's own

	mu       sync.Mutex
	reports  int // of errors, so far
	answered int // so many of them by a probe that began later and found the server up
	down     *DownError
	settled  chan struct{} // closed when a probe finds it up; a new one for each
	back     chan struct{} // closed when it comes back; a new one for each outage
}

// New returns a circuit that takes the server for up. [Circuit.Run] does the work. A second circuit of the same name
// panics where the first has registered its metrics.
func New(cfg Config) *Circuit {
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Second)
	cfg.Every = cmp.Or(cfg.Every, 5*time.Second)
	cfg.RetryMin, cfg.RetryMax = cmp.Or(cfg.RetryMin, 50*time.Millisecond), cmp.Or(cfg.RetryMax, 800*time.Millisecond)
	cfg.Log = cfg.Log.With("dependency", cfg.Name)
	metrics, labels := promauto.With(cfg.Registerer), prometheus.Labels{"dependency": cfg.Name}
	c := &Circuit{
		cfg: cfg, asked: make(chan struct{}, 1), settled: make(chan struct{}), back: make(chan struct{}),
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

// Run probes until ctx ends, and then returns nil. While it does not run, nothing changes.
func (c *Circuit) Run(ctx context.Context) error {
	pauses := failure.Backoff{Min: c.cfg.RetryMin, Max: c.cfg.RetryMax}
	for hurried := false; ; {
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
		if err != nil {
			wait, asked = pauses.Next(), nil // a caller now knows nothing new
		} else {
			pauses.Reset()
			if hurried { // complaints about a server that answers do not set the pace
				_ = failure.Sleep(ctx, c.cfg.RetryMin)
			}
		}
		hurried = false
		select {
		case <-time.After(wait):
		case <-asked:
			hurried = true
		case <-ctx.Done():
		}
	}
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
	was := c.down // which this method alone changes
	if err == nil {
		c.rise(ctx, known, was)
		return
	}
	down := &DownError{Name: c.cfg.Name, Since: time.Now(), Err: err}
	if was != nil {
		down.Since = was.Since
	}
	c.mu.Lock()
	c.down = down
	c.mu.Unlock()
	code := failure.Examine(err).Code
	switch {
	case was == nil:
		c.up.Set(0)
		c.outages.Inc()
		c.cfg.Log.ErrorContext(ctx, "dependency is down", "code", code, "error", err)
	case time.Since(c.saidAt) >= sayEvery:
		lasts := time.Since(down.Since).Round(time.Second)
		c.cfg.Log.WarnContext(ctx, "dependency is still down", "for", lasts, "code", code, "error", err)
	default:
		return
	}
	c.saidAt = time.Now()
}

// sayEvery is how often an outage that goes on is logged.
const sayEvery = time.Minute

// rise says that the server is up, and wakes those who wait; was is nil where it was up before.
func (c *Circuit) rise(ctx context.Context, known int, was *DownError) {
	if was != nil {
		if c.cfg.OnUp != nil {
			c.cfg.OnUp()
		}
		c.up.Set(1)
		c.cfg.Log.InfoContext(ctx, "dependency is back", "after", time.Since(was.Since).Round(time.Millisecond))
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

// DownError is why the server cannot be used. It is transient for every error of the probe.
type DownError struct {
	Name  string
	Since time.Time
	Err   error // of the last probe
}

func (e *DownError) Error() string { return fmt.Sprintf("%s is down: %v", e.Name, e.Err) }

// Unwrap returns what the last probe met.
func (e *DownError) Unwrap() error { return failure.AsTransient(e.Err) }

// Report says that a use of the server has failed in a way that may be the server's fault. It never blocks: the next
// probe begins at once, and only that one decides.
func (c *Circuit) Report(err error) {
	if err != nil && Suspicious(err) {
		c.Suspect()
	}
}

// Suspect is [Circuit.Report] of an error that is known to be the server's.
func (c *Circuit) Suspect() {
	c.mu.Lock()
	c.reports++
	c.mu.Unlock()
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

// Suspicious reports whether an error may mean that a server is down: it is transient, and it is not the server itself
// who speaks, fit and well, of locks, conflicts and leaders.
func Suspicious(err error) bool {
	if _, known := errors.AsType[*DownError](err); known {
		return true
	}
	v := failure.Examine(err)
	if v.Class != failure.Transient ||
		slices.ContainsFunc(fit, func(prefix string) bool { return strings.HasPrefix(v.Code, prefix) }) {
		return false
	}
	number, isBroker := strings.CutPrefix(v.Code, "kafka_")
	return !isBroker || strings.Trim(number, "0123456789") != ""
}

// fit are the codes of a database that works.
var fit = []string{"marked_transient", "sql_26", "sql_40", "sql_55", "sql_72"}

// Unsettled reports whether the server is down, or may be: an error was reported, and no probe that began later has
// answered.
func (c *Circuit) Unsettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down != nil || c.answered < c.reports
}

// Err is nil while the server is up, as far as is known, and a [*DownError] while it is down. It sends no probe.
func (c *Circuit) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		return nil
	}
	return c.down
}

// Down reports whether Err is not nil.
func (c *Circuit) Down() bool { return c.Err() != nil }

// Await returns nil when the server is up: at once if nothing else is known, after the next probe if an error was
// reported, after its return if it is down. What others report meanwhile does not make it wait for longer. It returns
// the cause of ctx's end if that comes first.
func (c *Circuit) Await(ctx context.Context) error {
	for reports := c.reported(); ; {
		c.mu.Lock()
		settled, up := c.settled, c.down == nil && c.answered >= reports
		c.mu.Unlock()
		if up {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", c.cfg.Name, context.Cause(ctx))
		}
	}
}

// Pause waits for d, or less: it returns as soon as the server comes back from an outage. It returns the cause of ctx's
// end if that comes first.
func (c *Circuit) Pause(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	back := c.back
	c.mu.Unlock()
	select {
	case <-time.After(d):
		return nil
	case <-back:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pause: %w", context.Cause(ctx))
	}
}
