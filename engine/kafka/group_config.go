package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// GroupConfig is a [Config] plus a membership in a consumer group. The
// zero value of every field but Brokers and Group means its default.
type GroupConfig struct {
	Config
	// Group is the consumer group. Required. It should name the environment, so that two of them never share offsets.
	Group string
	// InstanceID is the name of this member for as long as its process is restarted in its place (group.instance.id):
	// after a crash the successor takes its partitions at once instead of after SessionTimeout. It must differ between
	// processes that run at the same time; two would throw each other out in turn. A member
	// that closes leaves the group as it would without. Default "": the broker invents a name for each start.
	InstanceID string
	// SessionTimeout is how long a dead member keeps its partitions. Default 10 s.
	SessionTimeout time.Duration
	// HeartbeatInterval is how soon a member hears of a rebalance; at most a third of SessionTimeout. Default 1 s.
	HeartbeatInterval time.Duration
	// RebalanceTimeout is how long the group waits for a member to let a partition go. Default 30 s.
	RebalanceTimeout time.Duration
	// CommitInterval is how often acknowledged offsets are committed: a crash repeats as much. Default 1 s.
	CommitInterval time.Duration
	// FetchBytes is how much of a partition is asked for at once, as it lies on the log: compressed, if its producer
	// did that. A larger batch on the log is fetched all the same. An answer of a broker has four times as much at most,
	// of all partitions, or one batch. Default 256 KiB.
	FetchBytes int
	// DrainTimeout is how long a handler under way may still finish when its partition is handed over or the member
	// closes; then its context is cancelled, and it gets the same time again to return. Default 5 s.
	DrainTimeout time.Duration
	// ReconnectBackoff is the wait after the first failed attempt to consume; it doubles up to 2 s, each time up to a
	// fifth shorter or longer. Default 200 ms.
	ReconnectBackoff time.Duration
}

// WithDefaults returns the configuration that is really used.
func (c GroupConfig) WithDefaults() GroupConfig {
	c.Config = c.Config.WithDefaults()
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 10*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, 30*time.Second)
	c.CommitInterval = cmp.Or(c.CommitInterval, time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 5*time.Second)
	c.ReconnectBackoff = cmp.Or(c.ReconnectBackoff, 200*time.Millisecond)
	c.FetchBytes = cmp.Or(c.FetchBytes, 256<<10)
	return c
}

// Validate reports every problem at once, without connecting anywhere.
func (c GroupConfig) Validate() error {
	c = c.WithDefaults()
	problems := []error{c.Config.Validate()}
	if c.Group == "" {
		problems = append(problems, errors.New("group: a consumer group is needed"))
	}
	if c.HeartbeatInterval*3 > c.SessionTimeout {
		problems = append(problems, fmt.Errorf("heartbeat interval %s is more than a third of the session timeout %s",
			c.HeartbeatInterval, c.SessionTimeout))
	}
	if c.FetchBytes < 1024 || c.FetchBytes > MaxRequestBytes {
		problems = append(problems, fmt.Errorf("fetch bytes: %d is not between 1024 and %d", c.FetchBytes, MaxRequestBytes))
	}
	if c.DrainTimeout*2 >= c.RebalanceTimeout {
		problems = append(problems, fmt.Errorf("rebalance timeout %s does not exceed twice the drain timeout %s",
			c.RebalanceTimeout, c.DrainTimeout))
	}
	problems = append(problems, positive(map[string]time.Duration{
		"session timeout": c.SessionTimeout, "heartbeat interval": c.HeartbeatInterval,
		"rebalance timeout": c.RebalanceTimeout, "commit interval": c.CommitInterval,
		"drain timeout": c.DrainTimeout, "reconnect backoff": c.ReconnectBackoff,
	}))
	return errors.Join(problems...)
}

// Consumer returns the settings under which records are read; package consumer and watermill-kafka follow them.
//
//	setting                  value          what happens otherwise
//	Offsets.Initial          oldest         what was published before the group's first start is never seen
//	ResetInvalidOffsets      false          an offset that is gone jumps to the oldest or newest: silent loss
//	IsolationLevel           read committed records of aborted transactions are delivered
//	Offsets.AutoCommit       marked offsets only, every CommitInterval; a mark follows the ack, so a
//	                         crash repeats a second's records and loses none
//	GroupStrategies          cooperative-sticky   every rebalance stops every partition of every member
//	Session.Timeout          10 s           45 s (Kafka's own) without an owner after a crash
//	Heartbeat.Interval       1 s            a joiner waits 3 s for the others to notice
//	Rebalance.Timeout        30 s           shorter than a handler's drain: the member is thrown out
//	Net.ReadTimeout          above Rebalance.Timeout   joining a group, which may take that long, fails; all that a
//	                         member asks besides has RequestTimeout, and its fetches connections of their own
//	Return.Errors            true           errors go to sarama's own logger, which discards them
//	Fetch.Min, MaxWaitTime   1 byte, 500 ms a quiet topic delays its next record, or closing takes longer
//	Fetch.Default            256 KiB        1 MiB of each partition, compressed: twice the memory, no faster
//	Fetch.MaxBytes           four of those  an answer has that of every partition, up to 50 MiB
//	Retry.Backoff            250 ms         2 s without records after a leader moves
func (c GroupConfig) Consumer() *sarama.Config {
	c = c.WithDefaults()
	cfg := c.Client()
	cfg.Net.ReadTimeout = c.RebalanceTimeout + c.RequestTimeout
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Enable = true
	cfg.Consumer.Offsets.AutoCommit.Interval = c.CommitInterval
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	cfg.Consumer.Return.Errors = true
	cfg.Consumer.Fetch.Min = 1
	cfg.Consumer.Fetch.Default = int32(c.FetchBytes)
	cfg.Consumer.Fetch.MaxBytes = int32(min(4*c.FetchBytes, MaxRequestBytes))
	cfg.Consumer.MaxWaitTime = 500 * time.Millisecond
	cfg.Consumer.Retry.Backoff = 250 * time.Millisecond
	cfg.Consumer.Group.ResetInvalidOffsets = false
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
