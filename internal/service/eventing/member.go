package eventing

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/service"
)

type member struct {
	consumer *consumer
	config   kafka.ConsumerConfig
	records  atomic.Pointer[kafka.Consumer]
}

func newMember(c *consumer) (*member, error) {
	cfg := c.node.setup.Config
	m := &member{consumer: c, config: kafka.ConsumerConfig{
		Config:            c.node.setup.client,
		Group:             c.group,
		SessionTimeout:    cfg.Kafka.SessionTimeout,
		HeartbeatInterval: min(heartbeat, cfg.Kafka.SessionTimeout/3),
		RebalanceTimeout:  cfg.rebalanceTimeout(),
		DrainTimeout:      cfg.Inbox.HandlerTimeout,
		Batch:             cfg.Inbox.Batch,
		Points:            c.inbox,
		Lost:              c.recordLoss,
		Failed:            c.node.dependencies.broker.Report,
	}}
	return m, m.open("")
}

func (m *member) open(instanceID string) error {
	cfg, handle := m.config, m.consumer.inbox.BatchMiddleware(m.consumer.handle)
	cfg.InstanceID = instanceID
	records, err := kafka.NewConsumer(cfg, func(ctx context.Context, msgs []*message.Message) (int, error) {
		if err := m.consumer.awaitResume(ctx); err != nil {
			return 0, err
		}
		return handle(ctx, msgs)
	}, m.consumer.node.Log)
	if err == nil {
		m.records.Store(records)
	}
	return err
}

// Run continues without the name when another process takes it: else the two would evict each other for ever.
func (m *member) Run(ctx context.Context) error {
	node := m.consumer.node
	instanceID := node.setup.Config.Kafka.instanceID(node.bound)
	if err := m.open(instanceID); err != nil {
		return err
	}
	err := m.records.Load().Run(ctx, m.consumer.Topic)
	if !errors.Is(err, kafka.ErrFenced) {
		return err
	}
	node.Log.ErrorContext(ctx, "another process has the same KAFKA_INSTANCE_ID, going on without one",
		"consumer", m.consumer.Name, "instance_id", instanceID)
	if err := m.open(""); err != nil {
		return err
	}
	return m.records.Load().Run(ctx, m.consumer.Topic)
}

// Standings are those of the current membership.
func (m *member) Standings() []kafka.Standing { return m.records.Load().Standings() }

func (m *member) Healthy(ctx context.Context) error { return m.records.Load().Healthy(ctx) }

const (
	instanceAuto = "auto"
	instanceNone = "none"
)

// A broker refuses other names when a member joins.
var (
	instanceName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)
	notInName    = regexp.MustCompile(`[^A-Za-z0-9._-]`)
)

func (c KafkaConfig) validInstance() bool {
	return instanceName.MatchString(c.InstanceID) && strings.Trim(c.InstanceID, ".") != ""
}

// instanceID returns this process's name in its groups, "" for none. With auto it is the machine and the admin port:
// only a successor has the same.
func (c KafkaConfig) instanceID(bound service.Listening) string {
	switch c.InstanceID {
	case instanceNone:
		return ""
	case instanceAuto:
		_, port, unknown := net.SplitHostPort(bound.Admin)
		host, err := os.Hostname()
		if unknown != nil || err != nil || host == "" {
			return ""
		}
		name := notInName.ReplaceAllString(host, "-")
		return name[:min(len(name), 190)] + "-" + port
	}
	return c.InstanceID
}
