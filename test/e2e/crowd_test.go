package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/twinbox/test/testkit"
)

// crowd signs up and renames until it goes home.
type crowd struct {
	person *client
	habits habits
	stop   context.CancelFunc
	ended  sync.WaitGroup
	taken  atomic.Int64 // requests

	mu       sync.Mutex
	accepted []acceptance
	refused  int
	strange  []string // answers that no client should get while all services run
}

// habits are how many people there are, how often each renames, the pause behind a request that was taken, and how
// many requests they make together.
type habits struct {
	people, renames int
	pause           time.Duration
	most            int64
}

// keyVersion is a version of a key.
type keyVersion struct {
	key     string
	version int64
}

// acceptance is an accepted event, and when a person heard of it.
type acceptance struct {
	keyVersion
	at time.Time
}

// populate separates the addresses of two crowds by name.
func (h *stack) populate(t *testing.T, name string) *crowd {
	t.Helper()
	c := &crowd{person: h.client(), habits: habits{4, 3, 60 * time.Millisecond, 5000}}
	c.come(t, name)
	return c
}

func (c *crowd) come(t *testing.T, name string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	c.stop = stop
	for n := range c.habits.people {
		c.ended.Go(func() {
			for i := 0; ctx.Err() == nil && c.taken.Load() < c.habits.most; i++ {
				c.live(ctx, fmt.Sprintf("%s-%d-%d", name, n, i))
			}
		})
	}
	t.Cleanup(c.goHome)
}

// goHome waits for the answers to the requests under way.
func (c *crowd) goHome() {
	c.stop()
	c.ended.Wait()
}

func (c *crowd) await(t *testing.T, more int64) {
	t.Helper()
	want := c.taken.Load() + more
	testkit.Until(t, func() bool { return c.taken.Load() >= want }, "no sign-up is accepted")
}

func (c *crowd) refusals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

func (c *crowd) awaitRefusals(t *testing.T, more int) {
	t.Helper()
	want := c.refusals() + more
	testkit.Until(t, func() bool { return c.refusals() >= want }, "no client is refused")
}

func (c *crowd) live(ctx context.Context, name string) {
	body := fmt.Sprintf(`{"email":"%s@example.org","name":"Ada"}`, name)
	id := c.insist(ctx, http.StatusCreated, http.MethodPost, "/v1/signups", body, `"`+name+`"`)
	for version := 1; id != "" && version <= c.habits.renames; version++ {
		c.note(id, version)
		body := fmt.Sprintf(`{"name":"Ada %d","expected_version":%d}`, version+1, version)
		id = c.insist(ctx, http.StatusOK, http.MethodPatch, "/v1/customers/"+id, body, "")
	}
	if id != "" {
		c.note(id, c.habits.renames+1)
	}
}

func (c *crowd) note(id string, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted = append(c.accepted, acceptance{keyVersion{id, int64(version)}, time.Now()})
}

// insist returns "" for a person who is gone, or at another version: a request whose answer was lost was accepted.
func (c *crowd) insist(ctx context.Context, status int, method, path, body, key string) string {
	headers := map[string]string{}
	if key != "" {
		headers["Idempotency-Key"] = key
	}
	tick := time.NewTicker(c.habits.pause)
	defer tick.Stop()
	for ctx.Err() == nil {
		answer, err := c.person.try(context.WithoutCancel(ctx), method, path, body, headers)
		if err == nil && answer.Status == status {
			c.taken.Add(1)
			<-tick.C
			id, _ := answer.Body["user_id"].(string)
			return id
		}
		c.noteRefusal(answer, err)
		if err == nil && (answer.Status == http.StatusNotFound || answer.Body["code"] == "version_mismatch") {
			return ""
		}
		<-tick.C
	}
	return ""
}

var refusalCodes = []any{"unavailable", "outcome_unknown", "timeout"}

func (c *crowd) noteRefusal(answer response, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch code := answer.Body["code"]; {
	case err != nil:
		c.strange = append(c.strange, err.Error())
	case answer.Status == http.StatusServiceUnavailable && slices.Contains(refusalCodes, code):
		c.refused++
	case code == "idempotency_key_in_flight" || code == "version_mismatch":
	default:
		c.strange = append(c.strange, answer.raw)
	}
}

// lost returns the accepted events that the log does not have.
func (h *stack) lost(t *testing.T, topic string, accepted []acceptance) []acceptance {
	t.Helper()
	events, _ := h.logged(t, topic)
	known := map[keyVersion]bool{}
	for _, is := range events {
		known[is] = true
	}
	return slices.DeleteFunc(slices.Clone(accepted), func(a acceptance) bool { return known[a.keyVersion] })
}
