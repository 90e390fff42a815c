package kafka

import (
	"strings"
	"sync"
	"time"

	"github.com/rcrowley/go-metrics"
)

// throttling notes until when brokers hold this client back. Only a metric of sarama shows that.
type throttling struct {
	metrics.NilHistogram
	mu    sync.Mutex
	until time.Time
}

// Update implements [metrics.Histogram]. A broker sends the time with its answer, before it holds the next one back.
func (t *throttling) Update(milliseconds int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if until := time.Now().Add(time.Duration(milliseconds) * time.Millisecond); until.After(t.until) {
		t.until = until
	}
}

func (t *throttling) endsAfter(at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until.After(at)
}

// throttlingRegistry gives sarama the same histogram for all brokers. sarama drops those of a closed connection.
type throttlingRegistry struct {
	metrics.Registry
	throttling *throttling
}

// GetOrRegister implements [metrics.Registry].
func (r throttlingRegistry) GetOrRegister(name string, metric any) any {
	if strings.HasPrefix(name, "throttle-time-in-ms") {
		return r.throttling
	}
	return r.Registry.GetOrRegister(name, metric)
}
