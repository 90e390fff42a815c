package kafka_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
)

func TestConsumerConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	valid := kafka.ConsumerConfig{Config: kafka.Config{Brokers: []string{"a:1"}}, Group: "g"}
	_, err := kafka.NewConsumer(valid, nil, nil)
	require.NoError(t, err)
	for problem, change := range map[string]func(*kafka.ConsumerConfig){
		"at least one host:port":  func(c *kafka.ConsumerConfig) { c.Brokers = nil },
		"a consumer group is":     func(c *kafka.ConsumerConfig) { c.Group = "" },
		"twice the drain timeout": func(c *kafka.ConsumerConfig) { c.DrainTimeout = time.Minute },
		"Heartbeat.Interval":      func(c *kafka.ConsumerConfig) { c.HeartbeatInterval = time.Minute },
		"-1 is negative":          func(c *kafka.ConsumerConfig) { c.Batch = -1 },
		"SASL mechanism":          func(c *kafka.ConsumerConfig) { c.User, c.Password, c.Mechanism = "u", "p", "magic" },
	} {
		cfg := valid
		change(&cfg)
		_, err := kafka.NewConsumer(cfg, nil, nil)
		require.ErrorContains(t, err, problem)
	}
}
