package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/customer"
	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/internal/notification"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
	"example.com/twinbox/internal/verify/kafkalog"
)

func init() { judges = append(judges, (*stack).requireVerified) }

// requireVerified verifies from outside, so the services may have ended: no event is lost, doubled, altered, invented,
// reordered or given up, and every event could be verified.
func (h *stack) requireVerified(t *testing.T) {
	t.Helper()
	var c customer.Config
	var n notification.Config
	require.NoError(t, config.Load(h.customerEnv, &c))
	require.NoError(t, config.Load(h.notificationEnv, &n))
	h.requireClean(t, c.Config, verify.Config{
		DB: h.customerDB, Source: contract.SourceCustomer, Topics: names(c.Topics()),
		Consumers: []verify.Consumer{
			{Name: "customer.profile", Topic: contract.TopicUsers, Versioned: true, Accepts: customer.ProfileEvents().Accepts},
			{Name: "customer.mail", Topic: contract.TopicMails, Accepts: customer.MailEvents().Accepts},
		},
	})
	h.requireClean(t, n.Config, verify.Config{
		DB: h.notificationDB, Source: contract.SourceNotification, Topics: names(n.Topics()),
		Consumers: []verify.Consumer{{
			Name: "notification.users", Topic: contract.TopicUsers, Versioned: true,
			Accepts: notification.UserEvents().Accepts,
		}},
	})
}

func names(topics []kafka.Topic) (names []string) {
	for _, topic := range topics {
		names = append(names, topic.Name)
	}
	return names
}

func (h *stack) requireClean(t *testing.T, settings eventing.Config, cfg verify.Config) {
	t.Helper()
	cfg.Log = kafkalog.Log{Config: settings.Client("e2e")}
	cfg.Pause = func(context.Context) error { return nil } // nothing is under way any more
	for i := range cfg.Consumers {
		cfg.Consumers[i].Group = "twinbox." + settings.Environment + "." + cfg.Consumers[i].Name
	}
	verdict, err := verify.Run(context.WithoutCancel(t.Context()), cfg)
	require.NoError(t, err)
	require.Empty(t, verdict.Findings)
	require.Empty(t, verdict.Unverifiable)
	for _, topic := range verdict.Produced {
		require.Zero(t, topic.Waiting+topic.Held+topic.Discarded, topic.Topic)
	}
	for _, consumer := range verdict.Consumed {
		require.Zero(t, consumer.Dead, consumer.Consumer)
	}
}
