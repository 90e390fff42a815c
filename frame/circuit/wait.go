package circuit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/twinbox/engine/failure"
)

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
	if v.Class != failure.Transient {
		return false
	}
	for _, prefix := range fit {
		if strings.HasPrefix(v.Code, prefix) {
			return false
		}
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
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-back:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pause: %w", context.Cause(ctx))
	}
}
