package eventing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/kafka"
	"example.com/twinbox/engine/kafka/admin"
	"example.com/twinbox/engine/outbox/operate"
)

// measure adds what the database, the pool and the broker say about the node.
func (n *Node) measure() error {
	admin := n.setup.Admin
	return errors.Join(
		admin.Registry().Register(poolStats{n.Pool}),
		admin.Registry().Register(n.Verifier), // part: ops
		admin.Measure("outbox", operate.NewGauges(n.Pool)),
		admin.Measure("dead_letters", deadletter.NewGauges(n.Pool, n.consumerNames)),
		admin.Measure("consumer_lag", consumerLag{n}),
	)
}

func (n *Node) consumerNames() []string {
	names := make([]string, len(n.consumers))
	for i, c := range n.consumers {
		names[i] = c.Name
	}
	return names
}

// consumerLag is how far the consumers' groups are behind, in every partition of their topics, on every instance:
//
//	kafka_consumer_lag_records{consumer,topic,partition}   offsets between what is committed and the end of the log
//	kafka_consumer_lag_seconds{consumer,topic,partition}   since when the first of these records has been on the log
type consumerLag struct{ node *Node }

var (
	lagRecordsDesc = prometheus.NewDesc("kafka_consumer_lag_records",
		"Records on the log that the consumer has not committed; 0 at rest.", []string{"consumer", "topic", "partition"}, nil)
	lagSecondsDesc = prometheus.NewDesc("kafka_consumer_lag_seconds",
		"Time since the first record that the consumer has not committed was written; 0 at rest.",
		[]string{"consumer", "topic", "partition"}, nil)
)

// Describe lists the gauges.
func (consumerLag) Describe(out chan<- *prometheus.Desc) {
	out <- lagRecordsDesc
	out <- lagSecondsDesc
}

// Measure asks the broker for each consumer.
func (l consumerLag) Measure(ctx context.Context) ([]prometheus.Metric, error) {
	if err := l.node.dependencies.broker.Err(); err != nil {
		return nil, err
	}
	var metrics []prometheus.Metric
	found, err := l.read(ctx)
	for consumer, lags := range found {
		for _, lag := range lags {
			labels := []string{consumer, lag.Topic, strconv.Itoa(int(lag.Partition))}
			metrics = append(metrics,
				prometheus.MustNewConstMetric(lagRecordsDesc, prometheus.GaugeValue, float64(lag.Records), labels...),
				prometheus.MustNewConstMetric(lagSecondsDesc, prometheus.GaugeValue, lag.Age.Seconds(), labels...))
		}
	}
	return metrics, err
}

// Lags reads what waits on the log for each consumer, by its name. Beside an error it returns what could be read.
type Lags func(ctx context.Context) (map[string][]admin.Lag, error)

func (l consumerLag) read(ctx context.Context) (map[string][]admin.Lag, error) {
	found := make(map[string][]admin.Lag, len(l.node.consumers))
	var problems []error
	for _, c := range l.node.consumers {
		lags, err := admin.ReadLag(ctx, l.node.lagClient(), c.group, c.Topic)
		if err != nil {
			problems = append(problems, fmt.Errorf("read lag of %s: %w", c.Name, err))
		}
		found[c.Name] = lags
	}
	return found, errors.Join(problems...)
}

// lagClient is how the broker is asked what waits.
func (n *Node) lagClient() kafka.Config {
	client := n.setup.Config.Client(n.setup.Service)
	client.RequestTimeout = min(lagPatience, client.WithDefaults().PublishTimeout)
	return client
}

// lagPatience is shorter than a scrape's timeout.
const lagPatience = time.Second

// poolStats are the connections of the service's pool.
type poolStats struct{ pool *pgxpool.Pool }

func poolDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("database_pool_"+name, help, labels, nil)
}

var (
	poolConnectionsDesc = poolDesc("connections", "Connections: acquired, idle or being opened.", "state")
	poolMaxDesc         = poolDesc("max_connections", "Connections that the pool may open.")
	poolAcquiresDesc    = poolDesc("acquires_total", "Connections handed out.")
	poolWaitsDesc       = poolDesc("waits_total", "Connections handed out after waiting for one to come free or open.")
	poolCanceledDesc    = poolDesc("canceled_acquires_total", "Callers who gave up waiting for a connection.")
	poolWaitSecondsDesc = poolDesc("wait_seconds_total", "Time spent waiting for connections.")
)

// Describe implements [prometheus.Collector].
func (poolStats) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		poolConnectionsDesc, poolMaxDesc, poolAcquiresDesc, poolWaitsDesc, poolCanceledDesc, poolWaitSecondsDesc,
	} {
		out <- desc
	}
}

// Collect implements [prometheus.Collector].
func (p poolStats) Collect(out chan<- prometheus.Metric) {
	stat := p.pool.Stat()
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	for _, m := range []struct {
		desc   *prometheus.Desc
		kind   prometheus.ValueType
		value  float64
		labels []string
	}{
		{poolConnectionsDesc, gauge, float64(stat.AcquiredConns()), []string{"acquired"}},
		{poolConnectionsDesc, gauge, float64(stat.IdleConns()), []string{"idle"}},
		{poolConnectionsDesc, gauge, float64(stat.ConstructingConns()), []string{"opening"}},
		{poolMaxDesc, gauge, float64(stat.MaxConns()), nil},
		{poolAcquiresDesc, counter, float64(stat.AcquireCount()), nil},
		{poolWaitsDesc, counter, float64(stat.EmptyAcquireCount()), nil},
		{poolCanceledDesc, counter, float64(stat.CanceledAcquireCount()), nil},
		{poolWaitSecondsDesc, counter, stat.EmptyAcquireWaitTime().Seconds(), nil},
	} {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value, m.labels...)
	}
}
