package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Config names a Kafka cluster. A zero field means its default.
type Config struct {
	// Brokers are the bootstrap addresses, host:port. Required.
	Brokers []string
	// ClientID names this process in the broker's logs and quotas. Default "twinbox".
	ClientID string
	// PublishTimeout bounds one call of Publish, retries included. A relay's lease must be longer. Default 10 s.
	PublishTimeout time.Duration
	// RetryFor bounds the retries of one partition. Default half of PublishTimeout.
	RetryFor time.Duration
	// RequestTimeout bounds one request to a broker, connecting included. Default 4 s.
	RequestTimeout time.Duration
	// MaxMessageBytes bounds a record and a batch before compression. The broker's message.max.bytes must be more.
	// Default 1,000,000.
	MaxMessageBytes int
	// TLS, when set, encrypts every connection.
	TLS *tls.Config
	// User and Password, when set, log in by SASL. Use TLS with PLAIN, which sends the password.
	User, Password string
	// Mechanism is [Plain], [ScramSHA256] or [ScramSHA512]. Default [Plain].
	Mechanism string
}

const retryBackoff = 50 * time.Millisecond

// WithDefaults replaces zero values.
func (c Config) WithDefaults() Config {
	c.ClientID = cmp.Or(c.ClientID, "twinbox")
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 10*time.Second)
	c.RetryFor = cmp.Or(c.RetryFor, c.PublishTimeout/2)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, min(4*time.Second, c.PublishTimeout))
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 1_000_000)
	c.Mechanism = cmp.Or(c.Mechanism, Plain)
	return c
}

// Validate returns the first setting that cannot work. It does not connect.
func (c Config) Validate() error {
	if len(c.Brokers) == 0 {
		return errors.New("brokers: at least one host:port is needed")
	}
	return c.Producer().Validate()
}

// Client returns the settings that producing, consuming and administration share.
//
//	setting                     otherwise
//	Version                     requests that Kafka 4 refuses
//	AllowAutoTopicCreation      a misspelt topic is created
//	Metadata.Full               every client holds all topics' metadata
//	Metadata.RefreshFrequency   added partitions stay unread for ten minutes
//	Net.*Timeout                30 s for a broker that vanished
func (c Config) Client() *sarama.Config {
	c = c.WithDefaults()
	cfg := sarama.NewConfig()
	cfg.ClientID = c.ClientID
	cfg.Version = sarama.V3_6_0_0
	cfg.Metadata.AllowAutoTopicCreation = false
	cfg.Metadata.Full = false
	cfg.Metadata.RefreshFrequency = 10 * time.Second
	cfg.Net.DialTimeout = c.RequestTimeout
	cfg.Net.ReadTimeout = c.RequestTimeout
	cfg.Net.WriteTimeout = c.RequestTimeout
	cfg.Admin.Timeout = c.RequestTimeout
	c.secure(cfg)
	return cfg
}

// Producer returns the settings under which [Publisher] writes records.
//
//	setting              otherwise
//	RequiredAcks         acknowledged records are lost with the leader
//	Idempotent           a retry after a lost answer writes records twice
//	MaxOpenRequests      a retry overtakes the next batch: order lost
//	Retry                a leader election of a second fails the call
//	Metadata.Retry.Max   the search for a leader blocks other partitions
//	Producer.Timeout     the socket fails before the broker reports late replicas
//	Partitioner          a Java producer puts a key elsewhere
//	Compression          more bytes; zstd halves the rate
//	MaxMessageBytes      the broker refuses what the client accepted
func (c Config) Producer() *sarama.Config {
	c = c.WithDefaults()
	cfg := c.Client()
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Net.MaxOpenRequests = 1
	// Each pause doubles: together they last as long as RetryFor.
	pause := func(retries int) time.Duration { return retryBackoff << max(retries-1, 0) }
	cfg.Producer.Retry.BackoffFunc = func(retries, _ int) time.Duration { return pause(retries) }
	for cfg.Producer.Retry.Max = 1; pause(cfg.Producer.Retry.Max+1) < c.RetryFor; cfg.Producer.Retry.Max++ {
	}
	// For the producer's id. A broker that starts has none for seconds.
	cfg.Producer.Transaction.Retry.Max = cfg.Producer.Retry.Max
	cfg.Producer.Transaction.Retry.BackoffFunc = cfg.Producer.Retry.BackoffFunc
	cfg.Producer.Timeout = c.RequestTimeout * 3 / 4
	cfg.Producer.Partitioner = sarama.NewMurmur2Partitioner
	cfg.Producer.Compression = sarama.CompressionLZ4
	cfg.Producer.MaxMessageBytes = c.MaxMessageBytes
	cfg.Metadata.Retry.Max = 1
	cfg.Metadata.Retry.Backoff = retryBackoff
	cfg.Producer.Return.Successes = true
	return cfg
}

// maxBatchMemory bounds one batch after decompression. Producers fill batches of at most 1 MB.
const maxBatchMemory = 16 << 20

func init() { sarama.MaxDecompressedBatchSize = maxBatchMemory }

// ConsumerConfig is a member of a consumer group. A zero field means its default.
type ConsumerConfig struct {
	Config
	// Group is the consumer group. Required.
	Group string
	// InstanceID is the group.instance.id: a restarted process gets its partitions back immediately. Two processes must
	// not share one. Default "": none.
	InstanceID string
	// SessionTimeout is how long a dead member keeps its partitions. Default 10 s; with a quota more than 11 s, for which
	// a broker holds heartbeats back.
	SessionTimeout time.Duration
	// HeartbeatInterval is how fast a member learns of a rebalance; at most a third of SessionTimeout. Default 1 s.
	HeartbeatInterval time.Duration
	// RebalanceTimeout is how long the group waits for a member to release a partition. Default 30 s.
	RebalanceTimeout time.Duration
	// CommitInterval is how often acknowledged offsets are committed: a crash repeats that much. Default 1 s.
	CommitInterval time.Duration
	// DrainTimeout is how long a running call may finish when its partition moves or the member stops, and again when its
	// context has ended. Less than half of RebalanceTimeout. Default 5 s.
	DrainTimeout time.Duration
	// Backoff is the first pause after a failure; it doubles up to 20 times as long, 50 times for a handler. Default
	// 100 ms.
	Backoff time.Duration
	// Batch is the most messages of one call. Default 200.
	Batch int
	// MaxBytes bounds the keys, values and headers of a batch; the message that exceeds it is the last. Default 4,000,000.
	MaxBytes int
	// UnhealthyAfter is how long [Consumer.Healthy] tolerates a stop; for a known reason a third. It tolerates one call of
	// the handler, or one attempt between two calls of [Pausing], for twice RebalanceTimeout longer. Default 30 s.
	UnhealthyAfter time.Duration

	// Points is the handler's database. With it, records are read again after it or the broker went back; a partition
	// whose next record was removed is not read. Optional.
	Points Points
	// LookEvery is how often points and positions are compared, and how soon a member with an InstanceID looks for
	// partitions without an owner. Default 5 s.
	LookEvery time.Duration
	// Lost is called after the last call for a partition. Optional.
	Lost func(topic string, partition int32)
	// Failed is called when consuming fails, before a retry. It must not block. Optional.
	Failed func(err error)
}

func (c ConsumerConfig) withDefaults() ConsumerConfig {
	c.Config = c.WithDefaults()
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 10*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, 30*time.Second)
	c.CommitInterval = cmp.Or(c.CommitInterval, time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 5*time.Second)
	c.Backoff = cmp.Or(c.Backoff, 100*time.Millisecond)
	c.Batch = cmp.Or(c.Batch, 200)
	c.MaxBytes = cmp.Or(c.MaxBytes, 4_000_000)
	c.UnhealthyAfter = cmp.Or(c.UnhealthyAfter, 30*time.Second)
	c.LookEvery = cmp.Or(c.LookEvery, 5*time.Second)
	if c.Lost == nil {
		c.Lost = func(string, int32) {}
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	return c
}

// longestCall is more than a handler needs that ends with its timeout, even after the attempt of another partition.
func (c ConsumerConfig) longestCall() time.Duration { return c.UnhealthyAfter + 2*c.RebalanceTimeout }

// Validate returns the settings that cannot work. It does not connect.
func (c ConsumerConfig) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Group == "":
		return errors.New("group: a consumer group is needed")
	case 2*c.DrainTimeout >= c.RebalanceTimeout:
		return fmt.Errorf("rebalance timeout %s does not exceed twice the drain timeout %s", c.RebalanceTimeout,
			c.DrainTimeout)
	}
	return errors.Join(c.Config.Validate(), c.Consumer().Validate())
}

const (
	// fetchBytes is the compressed size of a request for a partition. A larger batch is fetched whole.
	fetchBytes = 256 << 10

	// fetchPartitions bounds an answer to so many times fetchBytes. Until it is buffered, other partitions wait.
	fetchPartitions = 16

	// readAhead is the least buffer of a partition, in records.
	readAhead = 200
)

// Consumer returns the settings under which [Consumer] reads records. A stock subscriber may use them.
//
//	setting               otherwise
//	Offsets.Initial       records from before the group's first start are never read
//	ResetInvalidOffsets   one partition whose offset is gone keeps the group from all others
//	IsolationLevel        records of aborted transactions are delivered
//	Offsets.AutoCommit    a crash repeats more
//	GroupStrategies       every rebalance stops all partitions
//	Session.Timeout       45 s (Kafka's default) without an owner after a crash
//	Heartbeat.Interval    a joiner waits 3 s for the others
//	Rebalance.Timeout     if shorter than a handler's drain, the member is removed
//	ChannelBufferSize     batches are split, and partitions wait for each other
//	Net.ReadTimeout       joining a group, which may take Rebalance.Timeout, fails
//	Net.Proxy             a vanished broker is waited for as long as for joining
//	Return.Errors         sarama's logger discards errors
//	Fetch.Default         1 MiB of each partition: twice the memory, no faster
//	Fetch.MaxBytes        one answer holds up to 50 MiB
//	Retry.Backoff         2 s without records after a leader moves
func (c ConsumerConfig) Consumer() *sarama.Config {
	c = c.withDefaults()
	cfg := c.Client()
	cfg.ChannelBufferSize = max(c.Batch, readAhead)
	cfg.Net.ReadTimeout = c.RebalanceTimeout + c.RequestTimeout
	// A fetch without records takes MaxWaitTime.
	dialer{context.Background(), c.RequestTimeout + cfg.Consumer.MaxWaitTime, c.TLS}.use(cfg)
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Interval = c.CommitInterval
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	cfg.Consumer.Return.Errors = true
	cfg.Consumer.Fetch.Default = fetchBytes
	cfg.Consumer.Fetch.MaxBytes = fetchPartitions * fetchBytes
	cfg.Consumer.Retry.Backoff = 250 * time.Millisecond
	cfg.Consumer.Group.ResetInvalidOffsets = true
	cfg.Consumer.Group.InstanceId = c.InstanceID
	cfg.Consumer.Group.Session.Timeout = c.SessionTimeout
	cfg.Consumer.Group.Heartbeat.Interval = c.HeartbeatInterval
	cfg.Consumer.Group.Rebalance.Timeout = c.RebalanceTimeout
	cfg.Consumer.Group.Rebalance.Retry.Backoff = 500 * time.Millisecond
	cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{
		sarama.NewBalanceStrategyCooperativeSticky(),
	}
	return cfg
}
