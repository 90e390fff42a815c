package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"example.com/twinbox/engine/inbox"
	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/client"
	"example.com/twinbox/ops/metrics"
)

// The metrics that the figures are made of.
var wanted = map[string]bool{
	"outbox_relay_published_total": true, "outbox_relay_lag_events": true, "outbox_relay_held_events": true,
	"inbox_messages_total": true, "kafka_consumer_lag_records": true, "dead_letters_waiting": true,
	"lease_attempts_total": true, "lease_rows": true, "metrics_source_up": true, started: true,
}

// figures are what the services say, added up.
type figures struct {
	services []*client.Service

	looking sync.Mutex // one look at a time: counters are compared with those before
	mu      sync.Mutex
	of      map[string]*standing // by service
	idle    time.Time            // since when nothing waits; zero: something does, or it is not known
	history []float64            // how much waited at each look
}

// standing is one service's.
type standing struct {
	counters map[string]*counter
	started  float64            // the process that counts
	waiting  map[string]float64 // by what it waits for
	known    bool               // all of that is known now
	dead     float64            // dead letters
	unsure   float64            // mails of which it is not known whether they were sent
	cause    service.ReadinessCause
}

// started is when the process of a service was: with each one its counters begin anew.
const started = "process_start_time_seconds"

// counter adds up what a metric grows by.
type counter struct{ last, total float64 }

func (c *counter) note(value float64) {
	c.total += value - c.last
	c.last = value
}

func newFigures(services []*client.Service) *figures {
	f := &figures{services: services, of: map[string]*standing{}}
	for _, s := range services {
		f.of[s.Name] = &standing{counters: map[string]*counter{}}
	}
	return f
}

// lookFor is how long one look may take.
const lookFor = 3 * time.Second

// begin reads what was counted before.
func (f *figures) begin(ctx context.Context) error {
	for _, s := range f.services {
		if _, err := f.take(ctx, s); err != nil {
			return err
		}
		for _, c := range f.of[s.Name].counters {
			c.total = 0
		}
	}
	return nil
}

func (f *figures) look(ctx context.Context) {
	f.looking.Lock()
	defer f.looking.Unlock()
	var all sync.WaitGroup
	for _, s := range f.services {
		all.Go(func() {
			cause, err := f.take(ctx, s)
			if err != nil && ctx.Err() == nil {
				cause = service.ReadinessCause{Code: "away", Sentence: "The service does not answer."}
			}
			f.explain(s.Name, cause, err == nil)
		})
	}
	all.Wait()
	f.remember()
}

// take asks one service.
func (f *figures) take(ctx context.Context, s *client.Service) (cause service.ReadinessCause, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	var found metrics.Set
	err = s.Look(ctx, "/metrics", func(body io.Reader) (err error) {
		found, err = metrics.Read(body, wanted)
		return err
	})
	if err != nil {
		return cause, err
	}
	f.add(s.Name, found)
	err = s.Look(ctx, "/readyz", func(body io.Reader) error {
		var ready service.Readiness
		if err := json.NewDecoder(io.LimitReader(body, metrics.MaxBytes)).Decode(&ready); err != nil {
			return fmt.Errorf("read readiness: %w", err)
		}
		if ready.Cause != nil && ready.Cause.Code != service.CodeAllWell {
			cause = *ready.Cause
		}
		return nil
	})
	return cause, err
}

const copies = "dlq." // topics of copies of dead letters, which are no events

func (f *figures) add(name string, found metrics.Set) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of[name]
	if began := metrics.Sum(found[started]); began != nil && *began != s.started {
		s.started = *began
		for _, c := range s.counters {
			c.last = 0
		}
	}
	count := func(metric string, counts func(labels map[string]string) string) {
		sums := map[string]float64{}
		for _, line := range found[metric] {
			if as := counts(line.Labels); as != "" {
				sums[as] += line.Value
			}
		}
		for as, value := range sums {
			if s.counters[as] == nil {
				s.counters[as] = &counter{}
			}
			s.counters[as].note(value)
		}
	}
	count("outbox_relay_published_total", func(labels map[string]string) string {
		if strings.HasPrefix(labels["topic"], copies) {
			return ""
		}
		return published
	})
	count("inbox_messages_total", func(labels map[string]string) string {
		switch outcome := inbox.Outcome(labels["outcome"]); outcome {
		case inbox.Duplicate:
			return duplicate
		case inbox.Failed, inbox.Ignored:
			return ""
		}
		return handled
	})
	count("lease_attempts_total", func(labels map[string]string) string { return "mail " + labels["result"] })

	s.known, s.waiting = len(found["metrics_source_up"]) > 0, map[string]float64{}
	for _, source := range found["metrics_source_up"] {
		s.known = s.known && source.Value == 1
	}
	for what, lines := range map[string][]metrics.Series{
		"to be published": found["outbox_relay_lag_events"], "held": found["outbox_relay_held_events"],
		"to be handled": found["kafka_consumer_lag_records"], "to be mailed": unsent(found["lease_rows"]),
	} {
		if total := metrics.Sum(lines); total != nil {
			s.waiting[what] = *total
		}
	}
	if dead := metrics.Sum(found["dead_letters_waiting"]); dead != nil {
		s.dead = *dead
	}
	if unsure := metrics.Sum(found.Having("lease_rows", "state", "uncertain")); unsure != nil {
		s.unsure = *unsure
	}
}

// unsent are the mails that the sender will still send.
func unsent(rows []metrics.Series) (all []metrics.Series) {
	for _, row := range rows {
		switch row.Labels["state"] {
		case "pending", "claimed", "submitting":
			all = append(all, row)
		}
	}
	return all
}

func (f *figures) explain(name string, cause service.ReadinessCause, answers bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of[name]
	s.known, s.cause = s.known && answers, cause
}

// correct puts what the verdict counted in the place of what was seen: a process that is killed takes its last counts
// with it.
func (f *figures) correct(counted map[string]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for what, n := range counted {
		for _, s := range f.of {
			delete(s.counters, what)
		}
		f.of[f.services[0].Name].counters[what] = &counter{total: float64(n)}
	}
}

func (f *figures) remember() {
	f.mu.Lock()
	defer f.mu.Unlock()
	total, known := 0.0, true
	for _, s := range f.of {
		known = known && s.known
		for _, n := range s.waiting {
			total += n
		}
	}
	f.history = append(f.history, total)
	switch {
	case !known || total > 0:
		f.idle = time.Time{}
	case f.idle.IsZero():
		f.idle = time.Now()
	}
}

// What is counted. Handled is what was applied and what was set aside.
const (
	published = "published"
	handled   = "handled"
	duplicate = "duplicate"
	mailed    = "mail done"
)

// seen is what the figures are at one moment.
type seen struct {
	counted map[string]int
	waiting map[string]int
	dead    int
	unsure  int
	known   bool
	since   time.Time // nothing waits
	history []float64
	causes  []cause // of the services that wait
}

func (f *figures) now() seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := seen{
		counted: map[string]int{}, waiting: map[string]int{}, known: true, since: f.idle,
		history: append([]float64(nil), f.history...),
	}
	for _, service := range f.services {
		s := f.of[service.Name]
		n.known, n.dead, n.unsure = n.known && s.known, n.dead+int(s.dead), n.unsure+int(s.unsure)
		for what, c := range s.counters {
			n.counted[what] += int(c.total)
		}
		for what, value := range s.waiting {
			n.waiting[what] += int(value)
		}
		if s.cause.Code != "" {
			n.causes = append(n.causes, cause{service.Name, s.cause.Code, s.cause.Sentence})
		}
	}
	return n
}

// cause is why a service waits.
type cause struct{ service, code, sentence string }

func (c cause) String() string { return c.service + ": " + c.sentence }

func (s seen) idle() time.Duration {
	if s.since.IsZero() {
		return 0
	}
	return time.Since(s.since)
}

func (s seen) total() (n int) {
	for _, waiting := range s.waiting {
		n += waiting
	}
	return n
}

// standing says what waits.
func (s seen) standing() string {
	var parts []string
	for _, what := range []string{"to be published", "held", "to be handled", "to be mailed"} {
		if n := s.waiting[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	for _, cause := range s.causes {
		parts = append(parts, cause.String())
	}
	if !s.known {
		parts = append(parts, "not all is known")
	}
	return strings.Join(parts, "; ")
}
