package eventing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/internal/verify/kafkalog"
)

// ErrVerifying means that a verification is under way: there is one at a time.
var ErrVerifying = errors.New("a verification is under way")

// Verifier reports whether anything is lost, doubled, altered, invented or reordered between the service's outbox, its
// topics and its inbox; see package verify.
type Verifier struct {
	node    *Node
	checks  []verify.Check
	busy    sync.Mutex
	last    atomic.Pointer[verify.Verdict]
	measure sync.Once
	pause   func(context.Context) error
}

// NewVerifier verifies the node's events, and its own tables with the checks. A node has at most one: its metrics are
// registered with the first verdict. Between two looks it pauses for longer than a batch takes to be sent and recorded,
// or an event to be handled.
func NewVerifier(n *Node, checks ...verify.Check) *Verifier {
	cfg := n.setup.Config
	pause := max(cfg.Outbox.Lease, cfg.Inbox.HandlerTimeout) + cfg.Kafka.PublishTimeout
	return &Verifier{
		node: n, checks: checks, pause: func(ctx context.Context) error { return failure.Sleep(ctx, pause) },
	}
}

// Verification is what is asked. All of it is optional.
type Verification struct {
	Since     *time.Time // leaves out events from before
	Progress  func(read int64)
	Suspected func(suspects int)
}

// Run verifies once. While another verification is under way the error is [ErrVerifying]. The verdict is also in the
// metrics, with its age.
func (v *Verifier) Run(ctx context.Context, asked Verification) (*verify.Verdict, error) {
	if !v.busy.TryLock() {
		return nil, ErrVerifying
	}
	defer v.busy.Unlock()
	setup := v.node.setup
	cfg := verify.Config{
		DB: v.node.Pool, Log: kafkalog.Log{Config: setup.client}, Source: setup.Source, Topics: namesOf(v.node.topics),
		Checks: v.checks, Since: asked.Since, Pause: v.pause,
		Progress: asked.Progress, Suspected: asked.Suspected,
	}
	for _, c := range v.node.consumers {
		cfg.Consumers = append(cfg.Consumers, verify.Consumer{
			Name: c.Name, Group: c.group, Topic: c.Topic, Accepts: c.Accepts,
			Versioned: c.Order == inbox.Strict || c.Order == inbox.Latest,
			OnlyWarns: inbox.ConflictMode(setup.Config.Inbox.OnConflict) == inbox.ConflictWarn,
		})
	}
	verdict, err := verify.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	v.last.Store(verdict)
	v.measure.Do(v.addGauges)
	return verdict, nil
}

// addGauges adds the last verdict of this process to the metrics. Before the first one there are none: 0 would be a
// verdict.
func (v *Verifier) addGauges() {
	metrics := promauto.With(v.node.Admin.Registry())
	for _, kind := range verify.Kinds {
		metrics.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "verify_findings", Help: "Findings of the last verification.",
			ConstLabels: prometheus.Labels{"kind": string(kind)},
		}, func() (found float64) {
			for _, f := range v.last.Load().Findings {
				if f.Kind == kind {
					found++
				}
			}
			return found
		})
	}
	metrics.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "verify_unverifiable", Help: "How many events or rows the last verification could not verify.",
	}, func() (count float64) {
		for _, u := range v.last.Load().Unverifiable {
			count += float64(u.Events)
		}
		return count
	})
	metrics.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "verify_age_seconds", Help: "Time since the last verification was begun.",
	}, func() float64 { return time.Since(v.last.Load().At).Seconds() })
}
