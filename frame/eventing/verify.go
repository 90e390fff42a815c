package eventing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/engine/verify"
)

// ErrVerifying means that a verification is under way: there is one at a time.
var ErrVerifying = errors.New("a verification is under way")

// Verifier says whether anything is lost, doubled, altered, invented or reordered between the service's outbox, its
// topics and its inbox; see package verify.
type Verifier struct {
	node   *Node
	checks []verify.Check
	busy   sync.Mutex
	last   atomic.Pointer[verify.Verdict]
	pause  func(context.Context) error
}

func newVerifier(n *Node) *Verifier { return &Verifier{node: n, pause: n.outlastWork} }

// Check registers a check of the service's own tables, which runs with each verification. Call it before [Node.Run].
func (v *Verifier) Check(name string, run func(context.Context, pgx.Tx) ([]verify.Finding, error)) {
	v.checks = append(v.checks, verify.Check{Name: name, Run: run})
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
		DB: v.node.Pool, Log: admin.Log{Config: setup.Config.Client(setup.Service)}, Source: setup.Source,
		Checks: v.checks, Since: asked.Since, Pause: v.pause,
		Progress: asked.Progress, Suspected: asked.Suspected,
	}
	for _, topic := range setup.Topics {
		cfg.Topics = append(cfg.Topics, topic.Name)
	}
	for _, c := range v.node.consumers {
		cfg.Consumers = append(cfg.Consumers, verify.Consumer{
			Name: c.Name, Group: c.group, Topic: c.Topic, Versioned: c.Versioned, Accepts: c.Handlers.Accepts,
		})
	}
	verdict, err := verify.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	v.last.Store(verdict)
	return verdict, nil
}

// outlastWork waits for longer than what is under way may take: a batch that is sent and recorded, an event that is
// handled.
func (n *Node) outlastWork(ctx context.Context) error {
	cfg := n.setup.Config
	timer := time.NewTimer(max(cfg.Outbox.Lease, cfg.Inbox.HandlerTimeout) + cfg.Kafka.PublishTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// The last verdict of this process:
//
//	verify_findings{kind}   what is wrong
//	verify_unverifiable     how much could not be verified
//	verify_age_seconds      how long ago it was begun
var (
	findingsDesc     = prometheus.NewDesc("verify_findings", "Findings of the last verification.", []string{"kind"}, nil)
	unverifiableDesc = prometheus.NewDesc("verify_unverifiable",
		"How many events or rows the last verification could not verify.", nil, nil)
	verdictAgeDesc = prometheus.NewDesc("verify_age_seconds", "Time since the last verification was begun.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (v *Verifier) Describe(out chan<- *prometheus.Desc) {
	out <- findingsDesc
	out <- unverifiableDesc
	out <- verdictAgeDesc
}

// Collect implements [prometheus.Collector]. Before the first verdict there is nothing: 0 would be one.
func (v *Verifier) Collect(out chan<- prometheus.Metric) {
	verdict := v.last.Load()
	if verdict == nil {
		return
	}
	found := map[verify.Kind]float64{}
	for _, f := range verdict.Findings {
		found[f.Kind]++
	}
	for _, kind := range verify.Kinds {
		out <- prometheus.MustNewConstMetric(findingsDesc, prometheus.GaugeValue, found[kind], string(kind))
	}
	var unverifiable float64
	for _, u := range verdict.Unverifiable {
		unverifiable += float64(u.Events)
	}
	out <- prometheus.MustNewConstMetric(unverifiableDesc, prometheus.GaugeValue, unverifiable)
	out <- prometheus.MustNewConstMetric(verdictAgeDesc, prometheus.GaugeValue, time.Since(verdict.At).Seconds())
}
