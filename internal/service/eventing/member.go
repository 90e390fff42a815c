package eventing

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
)

// join makes the member of the consumer's group.
func (c *consumer) join(instanceID string) error {
	cfg := c.node.setup.Config
	member, err := kafka.NewConsumer(kafka.ConsumerConfig{
		Config:            c.node.client,
		Group:             c.group,
		InstanceID:        instanceID,
		SessionTimeout:    cfg.Kafka.SessionTimeout,
		HeartbeatInterval: min(heartbeat, cfg.Kafka.SessionTimeout/3),
		RebalanceTimeout:  cfg.rebalanceTimeout(),
		DrainTimeout:      cfg.Inbox.HandlerTimeout,
		Batch:             cfg.Inbox.Batch,
		Points:            c.inbox,
		Lost:              c.leavePartition,
		Failed:            c.node.broker.Report,
	}, kafka.Handler(c.inbox.BatchMiddleware(c.handle)), c.node.Log)
	if err == nil {
		c.member.Store(member)
	}
	return err
}

// run continues without the name when another process takes it: the two would evict each other for ever.
func (c *consumer) run(ctx context.Context) error {
	for instanceID := c.node.setup.Config.Kafka.instanceID(c.node.bound); ; instanceID = "" {
		if err := c.join(instanceID); err != nil {
			return err
		}
		if err := c.member.Load().Run(ctx, c.Topic); !errors.Is(err, kafka.ErrFenced) {
			return err
		}
		c.node.Log.ErrorContext(ctx, "another process has the same KAFKA_INSTANCE_ID, continuing without one",
			"consumer", c.Name, "instance_id", instanceID)
	}
}

// A broker refuses other names when a member joins.
var instanceName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)

// instanceID returns this process's name in its groups, "" for none. With auto it is the machine and the admin port:
// only a successor has the same.
func (c KafkaConfig) instanceID(bound service.Listeners) string {
	switch c.InstanceID {
	case "none":
		return ""
	case "auto":
		_, port, unbound := net.SplitHostPort(bound.Admin)
		host, unknown := os.Hostname()
		name := host + "-" + port
		if unbound != nil || unknown != nil || !instanceName.MatchString(name) {
			return ""
		}
		return name
	}
	return c.InstanceID
}
