package consumer_test

import (
	"sync"
	"testing"
	"time"

	"example.com/twinbox/internal/kafka/consumer"
	"example.com/twinbox/test/testkit"
)

// clock is a consumer's watchdog's: time passes when the test says so, however fast the machine is.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	reads int
}

// watched gives the consumer a clock of the test's. Its limits are production's, its looks as frequent as a test wants.
func watched(cfg *consumer.Config) *clock {
	c := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	cfg.Now = c.read
	cfg.UnhealthyAfter, cfg.StopAfter = 30*time.Second, 5*time.Minute
	cfg.LookEvery = 5 * time.Millisecond
	return c
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	return c.now
}

// add lets time pass.
func (c *clock) add(d time.Duration) (reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.reads
}

// pass lets time pass and returns when the watchdog of the one partition has acted on it: since only the watchdog reads
// the clock, the second reading from now on follows a whole round.
func (c *clock) pass(t testing.TB, d time.Duration) {
	t.Helper()
	before := c.add(d)
	testkit.Until(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.reads > before+2
	}, "no watchdog reads the clock")
}
