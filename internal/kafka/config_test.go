package kafka_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
)

type pins map[string]struct{ want, have any }

func (p pins) check(t *testing.T) {
	t.Helper()
	for name, pin := range p {
		require.Equal(t, pin.want, pin.have, name)
	}
}

func TestProducerSettingsArePinned(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{"a:1"}}.Producer()
	require.NoError(t, cfg.Validate())
	pins{
		"Version":                {sarama.V3_6_0_0, cfg.Version},
		"ClientID":               {"twinbox", cfg.ClientID},
		"AllowAutoTopicCreation": {false, cfg.Metadata.AllowAutoTopicCreation},
		"Metadata.Full":          {false, cfg.Metadata.Full},
		"RefreshFrequency":       {10 * time.Second, cfg.Metadata.RefreshFrequency},
		"Metadata.Retry.Max":     {1, cfg.Metadata.Retry.Max},
		"DialTimeout":            {4 * time.Second, cfg.Net.DialTimeout},
		"ReadTimeout":            {4 * time.Second, cfg.Net.ReadTimeout},
		"WriteTimeout":           {4 * time.Second, cfg.Net.WriteTimeout},
		"RequiredAcks":           {sarama.WaitForAll, cfg.Producer.RequiredAcks},
		"Idempotent":             {true, cfg.Producer.Idempotent},
		"MaxOpenRequests":        {1, cfg.Net.MaxOpenRequests},
		"Retry.Max":              {7, cfg.Producer.Retry.Max},
		"Producer.Timeout":       {3 * time.Second, cfg.Producer.Timeout},
		"Compression":            {sarama.CompressionLZ4, cfg.Producer.Compression},
		"MaxMessageBytes":        {1_000_000, cfg.Producer.MaxMessageBytes},
		"Return.Successes":       {true, cfg.Producer.Return.Successes},
		"Return.Errors":          {true, cfg.Producer.Return.Errors},
		"TLS":                    {false, cfg.Net.TLS.Enable},
		"SASL":                   {false, cfg.Net.SASL.Enable},
	}.check(t)
}

func TestPausesOfTheProducerAreAsLongAsItInsists(t *testing.T) {
	t.Parallel()
	for insists, limit := range map[time.Duration]int{time.Millisecond: 1, 500 * time.Millisecond: 4, 5 * time.Second: 7} {
		cfg := kafka.Config{Brokers: []string{"a:1"}, RetryFor: insists}.Producer().Producer.Retry
		require.Equal(t, limit, cfg.Max)
		total := time.Duration(0)
		for n := range cfg.Max {
			total += cfg.BackoffFunc(n+1, cfg.Max)
		}
		require.GreaterOrEqual(t, total, insists)
	}
}

func TestConsumerSettingsArePinned(t *testing.T) {
	t.Parallel()
	cfg := kafka.ConsumerConfig{Config: kafka.Config{Brokers: []string{"a:1"}}, Group: "g", Batch: 1}.Consumer()
	require.NoError(t, cfg.Validate())
	group := cfg.Consumer.Group
	require.Len(t, group.Rebalance.GroupStrategies, 1)
	pins{
		"Version":              {sarama.V3_6_0_0, cfg.Version},
		"Offsets.Initial":      {sarama.OffsetOldest, cfg.Consumer.Offsets.Initial},
		"AutoCommit.Enable":    {true, cfg.Consumer.Offsets.AutoCommit.Enable},
		"AutoCommit.Interval":  {time.Second, cfg.Consumer.Offsets.AutoCommit.Interval},
		"ResetInvalidOffsets":  {true, group.ResetInvalidOffsets},
		"IsolationLevel":       {sarama.ReadCommitted, cfg.Consumer.IsolationLevel},
		"GroupStrategies":      {"cooperative-sticky", group.Rebalance.GroupStrategies[0].Name()},
		"Session.Timeout":      {10 * time.Second, group.Session.Timeout},
		"Heartbeat.Interval":   {time.Second, group.Heartbeat.Interval},
		"Rebalance.Timeout":    {30 * time.Second, group.Rebalance.Timeout},
		"Rebalance.Backoff":    {500 * time.Millisecond, group.Rebalance.Retry.Backoff},
		"Net.ReadTimeout":      {34 * time.Second, cfg.Net.ReadTimeout},
		"Return.Errors":        {true, cfg.Consumer.Return.Errors},
		"Fetch.Min":            {int32(1), cfg.Consumer.Fetch.Min},
		"Fetch.Default":        {int32(256 << 10), cfg.Consumer.Fetch.Default},
		"Fetch.MaxBytes":       {int32(16 * 256 << 10), cfg.Consumer.Fetch.MaxBytes},
		"ChannelBufferSize":    {200, cfg.ChannelBufferSize},
		"MaxWaitTime":          {500 * time.Millisecond, cfg.Consumer.MaxWaitTime},
		"Consumer.Backoff":     {250 * time.Millisecond, cfg.Consumer.Retry.Backoff},
		"RefreshFrequency":     {10 * time.Second, cfg.Metadata.RefreshFrequency},
		"AutoTopicCreation":    {false, cfg.Metadata.AllowAutoTopicCreation},
		"deprecated Strategy":  {nil, group.Rebalance.Strategy},
		"deprecated Committer": {time.Duration(0), cfg.Consumer.Offsets.CommitInterval},
	}.check(t)
}

func TestPublisherConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	for problem, cfg := range map[string]kafka.Config{
		"at least one host:port": {},
		"Net.DialTimeout":        {Brokers: []string{"a:1"}, PublishTimeout: -1},
		"MaxMessageBytes":        {Brokers: []string{"a:1"}, MaxMessageBytes: -1},
		"Net.SASL.Password":      {Brokers: []string{"a:1"}, User: "u"},
	} {
		_, err := kafka.NewPublisher(cfg, nil)
		require.ErrorContains(t, err, problem)
	}
}

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
		"SASL mechanism":          func(c *kafka.ConsumerConfig) { c.User, c.Password, c.Mechanism = "u", "p", "magic" },
	} {
		cfg := valid
		change(&cfg)
		_, err := kafka.NewConsumer(cfg, nil, nil)
		require.ErrorContains(t, err, problem)
	}
}
