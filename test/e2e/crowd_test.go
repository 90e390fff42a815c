package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/servicetest"
	"example.com/twinbox/test/testkit"
)

type crowd struct {
	person *client
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	ids     []string
	refused int
	strange []string // answers that no client should get
}

const (
	people     = 4
	signupEach = 100 * time.Millisecond
)

func (h *stack) gather(t *testing.T) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &crowd{person: h.client(), stop: stop}
	c.person.http.Timeout = patience
	for n := range people {
		c.ended.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c.signUp(ctx, fmt.Sprintf("p%d-%d", n, i))
			}
		})
	}
	t.Cleanup(func() {
		stop()
		c.ended.Wait()
	})
	return c
}

// signUp also repeats after goHome: the service may have accepted a request whose answer was lost.
func (c *crowd) signUp(ctx context.Context, name string) {
	tick := time.NewTicker(signupEach)
	defer tick.Stop()
	body := fmt.Sprintf(`{"email":"%s@example.org","name":"Ada"}`, name)
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); <-tick.C {
		answer, err := c.person.try(context.WithoutCancel(ctx), http.MethodPost, "/v1/signups", body,
			map[string]string{"Idempotency-Key": `"` + name + `"`})
		if c.note(answer, err) {
			<-tick.C
			return
		}
	}
}

var refusalCodes = []any{"unavailable", "outcome_unknown", "timeout"}

func (c *crowd) note(answer response, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch code := answer.Body["code"]; {
	case err != nil:
		c.strange = append(c.strange, err.Error())
	case answer.Status == http.StatusCreated:
		id, _ := answer.Body["user_id"].(string)
		c.ids = append(c.ids, id)
		return true
	case answer.Status == http.StatusServiceUnavailable && slices.Contains(refusalCodes, code):
		c.refused++
	case answer.Status == http.StatusConflict && code == "idempotency_key_in_flight":
	default:
		c.strange = append(c.strange, answer.raw)
	}
	return false
}

func (c *crowd) accepted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ids)
}

func (c *crowd) refusals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

func (c *crowd) latest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[len(c.ids)-1]
}

func (c *crowd) await(t *testing.T, more int) {
	t.Helper()
	want := c.accepted() + more
	testkit.Until(t, func() bool { return c.accepted() >= want }, "no client can sign up")
}

func (c *crowd) awaitRefusals(t *testing.T, more int) {
	t.Helper()
	want := c.refusals() + more
	testkit.Until(t, func() bool { return c.refusals() >= want }, "no client is refused")
}

func (c *crowd) goHome() int {
	c.stop()
	c.ended.Wait()
	return c.accepted()
}

type watched struct {
	name, admin string
	log         *logLines
	stop        func() // requires a clean stop
}

func (h *stack) watch(t *testing.T, name string) *watched {
	t.Helper()
	w := &watched{name: name, log: &logLines{}}
	at, stop := h.startWith(t, name, h.environ(name), slog.New(slog.NewJSONHandler(w.log, nil)).With("service", name))
	w.admin, w.stop = at.Admin, stop
	t.Cleanup(func() {
		w.stop()
		if t.Failed() {
			t.Logf("warnings of %s: %v", name, w.warnings())
		}
	})
	return w
}

func (w *watched) readyz(t *testing.T) (got readiness) {
	t.Helper()
	code, body := servicetest.Get(t, "http://"+w.admin+"/readyz")
	got.code = code
	require.NoError(t, json.Unmarshal([]byte(body), &got.report))
	return got
}

type logLines struct{ lockedBuffer }

type line struct {
	Service, Level, Msg, Dependency, Error string

	EventID       string `json:"event_id"`
	CorrelationID string `json:"correlation_id"`
}

func (l *logLines) lines() (list []line) {
	for raw := range bytes.Lines([]byte(l.String())) {
		var one line
		if json.Unmarshal(raw, &one) == nil {
			list = append(list, one)
		}
	}
	return list
}

func (w *watched) warnings() []line {
	return slices.DeleteFunc(w.log.lines(), func(l line) bool { return l.Level == "INFO" })
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
