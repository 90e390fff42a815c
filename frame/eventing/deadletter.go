package eventing

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"example.com/twinbox/engine/deadletter"
	"example.com/twinbox/engine/outbox"
)

// project begins the name of every consumer group: two projects on one broker do not share work.
const project = "twinbox"

// group is the consumer group of a consumer.
func (c Config) group(consumer string) string { return project + "." + c.Environment + "." + consumer }

// CopyTopic is the topic for the copies of a consumer's dead letters. It belongs to the service's own topics.
func (c Config) CopyTopic(consumer, topic string) string {
	return deadletter.CopyTopic(c.group(consumer), topic)
}

// copies writes copies of dead letters to the outbox, in the transaction that files them.
type copies struct {
	node  *Node
	count *prometheus.CounterVec
}

func newCopies(n *Node) (*copies, error) {
	c := &copies{node: n, count: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dead_letter_copies_total",
		Help: "Dead letters by what became of their copy: queued, or why there is none. The row is there in any case.",
	}, []string{"consumer", "result"})}
	if err := n.setup.Admin.Registry().Register(c.count); err != nil {
		return nil, fmt.Errorf("register metrics of dead letter copies: %w", err)
	}
	return c, nil
}

// write writes one. A record that the outbox does not take, say because it is too large, has no copy: the
// database's errors alone keep the dead letter from being filed.
func (c *copies) write(ctx context.Context, tx pgx.Tx, l deadletter.Letter) error {
	if l.Group == "" || l.Topic == "" {
		c.count.WithLabelValues(l.Consumer, "no_origin").Inc()
		return nil
	}
	err := c.node.Outbox.AddRecord(ctx, tx, deadletter.CopyTopic(l.Group, l.Topic), l.Copy(), l.Payload)
	refused, is := errors.AsType[*outbox.EventError](err)
	switch {
	case is:
		c.count.WithLabelValues(l.Consumer, string(refused.Code)).Inc()
		c.node.setup.Log.WarnContext(ctx, "dead letter has no copy", "consumer", l.Consumer, "event_id", l.EventID,
			"correlation_id", l.CorrelationID(), "code", refused.Code, "reason", refused.Detail)
		return nil
	case err != nil:
		return fmt.Errorf("copy dead letter: %w", err)
	}
	c.count.WithLabelValues(l.Consumer, "queued").Inc()
	return nil
}
