package kafka

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// Config is where Kafka is and how long to wait for it. The zero value of every field but Brokers means its default.
type Config struct {
	// Brokers are the bootstrap addresses, host:port. Required.
	Brokers []string
	// ClientID names this process in the broker's logs and quotas. Default "twinbox".
	ClientID string
	// PublishTimeout bounds one call of Publish, retries included. When it has passed, the outcome of what is not yet
	// acknowledged is unknown. A relay's lease must be longer. Default 10 s.
	PublishTimeout time.Duration
	// RetryFor bounds the retries of one partition, so that a partition without a leader does not hold up the others
	// of the call for the whole PublishTimeout. Default half of PublishTimeout.
	RetryFor time.Duration
	// RequestTimeout bounds one request to a broker, connecting included. Default 4 s.
	RequestTimeout time.Duration
	// MaxMessageBytes bounds a record and a partition's batch, before compression. It must stay below the broker's
	// message.max.bytes, which counts the batch. Default 1,000,000.
	MaxMessageBytes int
	// TLS, when set, encrypts every connection.
	TLS *tls.Config
	// User and Password, when set, log in by SASL. PLAIN sends the password, so it belongs inside TLS.
	User, Password string
	// Mechanism is how: [Plain], [ScramSHA256] or [ScramSHA512]. Default [Plain].
	Mechanism string
}

const retryBackoff = 50 * time.Millisecond

// WithDefaults returns the configuration that is really used.
func (c Config) WithDefaults() Config {
	c.ClientID = cmp.Or(c.ClientID, "twinbox")
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 10*time.Second)
	c.RetryFor = cmp.Or(c.RetryFor, c.PublishTimeout/2)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, min(4*time.Second, c.PublishTimeout))
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, 1_000_000)
	c.Mechanism = cmp.Or(c.Mechanism, Plain)
	return c
}

// Validate reports what no broker can work with, without connecting anywhere.
func (c Config) Validate() error {
	if len(c.Brokers) == 0 {
		return errors.New("brokers: at least one host:port is needed")
	}
	return c.Producer().Validate()
}

// Client returns the settings that producing, consuming and administration have in common.
//
//	setting                     value        what happens otherwise
//	Version                     3.6          old request versions, which Kafka 4 refuses
//	AllowAutoTopicCreation      false        a misspelt topic is created with one partition, and its keys move later
//	Metadata.Full               false        every client holds the metadata of every topic in the cluster
//	Metadata.RefreshFrequency   10 s         added partitions stay unread for ten minutes
//	Net.*Timeout                RequestTimeout   30 s for a broker that vanished without a word
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
//	setting               value                 what happens otherwise
//	RequiredAcks          all in-sync replicas  an acknowledged record is lost when the leader fails
//	Idempotent            true                  a retry after a lost answer writes the records again
//	MaxOpenRequests       1                     a retry overtakes the batch behind it: order lost
//	Retry                 as long as RetryFor   a leader election of a second fails the call
//	Metadata.Retry.Max    1                     looking for a lost leader blocks what goes to the others
//	Producer.Timeout      3/4 RequestTimeout    the socket gives up before the broker says that its replicas are late
//	Partitioner           murmur2, as Java      a Java producer of the same topic puts a key elsewhere (9,208 of 10,000)
//	Compression           lz4                   twice the bytes on the network, the disks and in every consumer
//	MaxMessageBytes       below message.max.bytes   the broker refuses what the client took for fine
//
// Of the codecs lz4 alone costs nothing that BenchmarkPublish can see: fewer bytes to copy pay for it, at batches of
// one event and of thousands. zstd halves the rate, none and snappy send more.
func (c Config) Producer() *sarama.Config {
	c = c.WithDefaults()
	cfg := c.Client()
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent = true
	cfg.Net.MaxOpenRequests = 1
	// Each pause is twice the one before: together they are as long as RetryFor.
	pause := func(retries int) time.Duration { return retryBackoff << max(retries-1, 0) }
	cfg.Producer.Retry.BackoffFunc = func(retries, _ int) time.Duration { return pause(retries) }
	for cfg.Producer.Retry.Max = 1; pause(cfg.Producer.Retry.Max+1) < c.RetryFor; cfg.Producer.Retry.Max++ {
	}
	// For the producer's id, at each connection. A broker that starts has none for seconds: until then no call is sent.
	cfg.Producer.Transaction.Retry.Max, cfg.Producer.Transaction.Retry.Backoff = cfg.Producer.Retry.Max, retryBackoff
	cfg.Producer.Timeout = c.RequestTimeout * 3 / 4
	cfg.Producer.Partitioner = sarama.NewMurmur2Partitioner
	cfg.Producer.Compression = sarama.CompressionLZ4
	cfg.Producer.MaxMessageBytes = c.MaxMessageBytes
	cfg.Metadata.Retry.Max = 1
	cfg.Metadata.Retry.Backoff = retryBackoff
	cfg.Producer.Return.Successes = true
	return cfg
}

// maxBatchMemory bounds what one compressed batch may become in memory. Without a bound, a megabyte of zeros compressed
// well takes as many gigabytes and the process with them, again after every start. Reading a batch takes up to four
// times as much for a moment, and a consumer may read one of each partition at the same time. Producers fill batches of
// 1 MB or less before they compress them.
const maxBatchMemory = 16 << 20

// The bound is a variable of sarama's, read by its goroutines: it has to stand before the first of them starts.
func init() { sarama.MaxDecompressedBatchSize = maxBatchMemory }

// ConsumerConfig is a [Config] plus a membership in a consumer group. The zero value of every field but Brokers and
// Group means its default.
type ConsumerConfig struct {
	Config
	// Group is the consumer group. Required. It should name the environment, so that two of them never share offsets.
	Group string
	// InstanceID is the name of this member for as long as its process is restarted in its place (group.instance.id):
	// after a crash the successor takes its partitions at once instead of after SessionTimeout. It must differ between
	// processes that run at the same time; two would throw each other out in turn. A member
	// that closes leaves the group as it would without. Default "": the broker invents a name for each start.
	InstanceID string
	// SessionTimeout is how long a dead member keeps its partitions. Default 10 s. A broker with a quota for this client
	// holds heartbeats back too, up to 11 s by its defaults: then more than that.
	SessionTimeout time.Duration
	// HeartbeatInterval is how soon a member hears of a rebalance; at most a third of SessionTimeout. Default 1 s.
	HeartbeatInterval time.Duration
	// RebalanceTimeout is how long the group waits for a member to let a partition go. Default 30 s.
	RebalanceTimeout time.Duration
	// CommitInterval is how often acknowledged offsets are committed: a crash repeats as much. Default 1 s.
	CommitInterval time.Duration
	// DrainTimeout is how long a handler under way may still finish when its partition is handed over or the member
	// closes; then its context is cancelled, and it gets the same time again to return. Less than half of
	// RebalanceTimeout. Default 5 s.
	DrainTimeout time.Duration
	// Backoff is the first pause before what failed is tried again; it doubles for as long as that fails, up to 20 times
	// as long for the group and 50 times for a handler. Default 100 ms.
	Backoff time.Duration
	// Batch is how many messages one call of the handler gets at most. Default 200.
	Batch int
	// MaxBytes bounds the keys, values and headers of a batch: the message that exceeds it is the batch's last. Default
	// 4,000,000.
	MaxBytes int
	// UnhealthyAfter is how long [Consumer.Healthy] overlooks that nothing is consumed; a third of that where the reason
	// is known. Default 30 s.
	UnhealthyAfter time.Duration

	// Points is where the handler's database stores how far it has the outcomes of records. With it the member begins
	// where the database is, and reads records again when the database or the broker went back. Its messages have
	// [event.Origin] with From. Default: the committed offset alone counts.
	Points Points
	// LookEvery is how often the points are compared with the positions of the partitions, which finds a database that
	// went back also without new records. Default 5 s.
	LookEvery time.Duration
	// Lost is called when a partition is no longer read, and none of its messages is being handled. Optional.
	Lost func(topic string, partition int32)
	// Failed is called when an attempt to consume has failed and will be repeated. It must not block. Optional.
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

// Validate reports what cannot work, without connecting anywhere.
func (c ConsumerConfig) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Group == "":
		return errors.New("group: a consumer group is needed")
	case c.Batch < 0:
		return fmt.Errorf("batch: %d is negative", c.Batch)
	case 2*c.DrainTimeout >= c.RebalanceTimeout:
		return fmt.Errorf("rebalance timeout %s does not exceed twice the drain timeout %s", c.RebalanceTimeout,
			c.DrainTimeout)
	}
	return errors.Join(c.Config.Validate(), c.Consumer().Validate())
}

const (
	// fetchBytes is how much of a partition is asked for at once, as it lies on the log. A larger batch is fetched all the
	// same.
	fetchBytes = 256 << 10

	// fetchPartitions bounds an answer of a broker: it has fetchBytes of so many partitions. sarama asks for the next
	// answer when the records of this one have room, and meanwhile the other partitions get none.
	fetchPartitions = 16

	// readAhead is for how many records a partition has room at least.
	readAhead = 200
)

// Consumer returns the settings under which [Consumer] reads records, and a stock subscriber of watermill-kafka may.
//
//	setting                  value          what happens otherwise
//	Offsets.Initial          oldest         what was published before the group's first start is never seen
//	ResetInvalidOffsets      true           one partition whose offset is gone keeps the group from all the others;
//	                         [Consumer] compares the offsets itself, a stock subscriber rereads in silence
//	IsolationLevel           read committed records of aborted transactions are delivered
//	Offsets.AutoCommit       marked offsets only, every CommitInterval; a mark follows the ack, so a
//	                         crash repeats a second's records and loses none
//	GroupStrategies          cooperative-sticky   every rebalance stops every partition of every member
//	Session.Timeout          10 s           45 s (Kafka's own) without an owner after a crash
//	Heartbeat.Interval       1 s            a joiner waits 3 s for the others to notice
//	Rebalance.Timeout        30 s           shorter than a handler's drain: the member is thrown out
//	ChannelBufferSize        Batch, at least 200   a batch is handed over in pieces; with small batches, partitions wait
//	                         for each other
//	Net.ReadTimeout          above Rebalance.Timeout   joining a group, which may take that long, fails; all that a
//	                         member asks besides has RequestTimeout, and its fetches connections of their own
//	Return.Errors            true           errors go to sarama's own logger, which discards them
//	Fetch.Min, MaxWaitTime   1 byte, 500 ms a quiet topic delays its next record, or closing takes longer
//	Fetch.Default            256 KiB        1 MiB of each partition, compressed: twice the memory, no faster
//	Fetch.MaxBytes           16 of those    an answer has that of every partition, up to 50 MiB
//	Retry.Backoff            250 ms         2 s without records after a leader moves
func (c ConsumerConfig) Consumer() *sarama.Config {
	c = c.withDefaults()
	cfg := c.Client()
	cfg.ChannelBufferSize = max(c.Batch, readAhead)
	cfg.Net.ReadTimeout = c.RebalanceTimeout + c.RequestTimeout
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
