package eventing

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/IBM/pgxpoolprometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/outbox/relay"
)

func (n *Node) measure() {
	admin, metrics := n.Admin, promauto.With(n.Admin.Registry())
	n.copies = metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "dead_letter_copies_total",
		Help: "Dead letters by what became of their copy: queued, or why there is none. The row is there in any case.",
	}, []string{"consumer", "result"})
	n.written = metrics.NewGaugeVec(prometheus.GaugeOpts{
		Name: "outbox_topic_info",
		Help: "1 for each topic that the service writes to, whether or not it has written to it.",
	}, []string{"topic"})
	n.addTopics(n.setup.Topics...)
	admin.Registry().MustRegister(pgxpoolprometheus.NewCollector(n.Pool, nil))
	admin.Measure("outbox", func(ctx context.Context) ([]prometheus.Metric, error) { return relay.Measure(ctx, n.Pool) })
	admin.Measure("dead_letters", func(ctx context.Context) ([]prometheus.Metric, error) {
		return deadletter.Measure(ctx, n.Pool, n.consumerNames())
	})
	admin.Measure("consumer_lag", n.measureLag)
}

func (n *Node) consumerNames() []string {
	names := make([]string, len(n.consumers))
	for i, c := range n.consumers {
		names[i] = c.Name
	}
	return names
}

var (
	lagRecordsDesc = prometheus.NewDesc("kafka_consumer_lag_records",
		"Records on the log that the consumer has not handled; 0 at rest.", []string{"consumer", "topic", "partition"}, nil)
	lagSecondsDesc = prometheus.NewDesc("kafka_consumer_lag_seconds",
		"Time since the first record that the consumer has not handled was written; 0 at rest.",
		[]string{"consumer", "topic", "partition"}, nil)
)

// With an error measureLag returns the lags of the consumers whose topic it read.
func (n *Node) measureLag(ctx context.Context) (metrics []prometheus.Metric, err error) {
	if err := n.broker.Err(); err != nil {
		return nil, err
	}
	var problems []error
	for _, c := range n.consumers {
		lags, err := kafka.ReadLag(ctx, n.lagClient(), c.group, c.Topic, c.inbox)
		if err != nil {
			problems = append(problems, fmt.Errorf("read lag of %s: %w", c.Name, err))
		}
		for _, lag := range lags {
			labels := []string{c.Name, lag.Topic, strconv.Itoa(int(lag.Partition))}
			metrics = append(metrics,
				prometheus.MustNewConstMetric(lagRecordsDesc, prometheus.GaugeValue, float64(lag.Records), labels...),
				prometheus.MustNewConstMetric(lagSecondsDesc, prometheus.GaugeValue, lag.Age.Seconds(), labels...))
		}
	}
	return metrics, errors.Join(problems...)
}
