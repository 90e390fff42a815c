package kafka_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func fill(t testing.TB, brokers []string, n int) (topic string, msgs []*message.Message) {
	t.Helper()
	topic = kafkatest.Topic(t, brokers, 2)
	msgs = events(n, keys(10)...)
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, msgs...))
	return topic, msgs
}

func TestAHandlerMayFinishDuringARebalance(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, msgs := fill(t, brokers, 40)
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.DrainTimeout, cfg.RebalanceTimeout = kafkatest.Patience, 3*kafkatest.Patience
	first := join(t, cfg, topic)
	working := map[int32]call{}
	for range 2 { // one of each partition
		c := receive(t, first.calls)
		working[c.place().Partition] = c
	}
	require.Len(t, working, 2)

	second := join(t, cfg, topic)
	awaitWithheld(t, brokers, cfg.Group)
	require.Empty(t, second.Standings(), "the partition moved under a handler's feet")
	for _, c := range working {
		require.NoError(t, c.ctx.Err())
		c.ack()
	}
	seen, handled := map[string]int{}, map[int32]int64{0: 1, 1: 1}
	var moved int32
	for lost := false; !lost; { // until it learns of the loss, the first member reads more
		select {
		case c := <-first.calls:
			seen[c.ids()[0]]++
			handled[c.place().Partition]++
			c.ack()
		case moved = <-first.lost:
			lost = true
		case <-time.After(kafkatest.Patience):
			require.FailNow(t, "no partition was lost")
		}
	}
	second.awaitPartition(t)
	require.Equal(t, moved, second.Standings()[0].Partition)
	require.Equal(t, handled[moved], committedOf(t, brokers, cfg.Group, topic, moved), "behind the last acknowledged one")

	for len(seen) < len(msgs)-2 {
		var c call
		select {
		case c = <-first.calls:
		case c = <-second.calls:
		case <-time.After(kafkatest.Patience):
			require.FailNow(t, "messages are missing")
		}
		seen[c.ids()[0]]++
		require.Equal(t, 1, seen[c.ids()[0]], "handled twice")
		c.ack()
	}
	for _, c := range working {
		require.NotContains(t, seen, c.ids()[0])
	}
}

// awaitWithheld waits until neither member owns the partition, because the first one's handler still works.
func awaitWithheld(t *testing.T, brokers []string, group string) {
	t.Helper()
	cluster := admin(t, brokers)
	testkit.Until(t, func() bool {
		groups, err := cluster.DescribeConsumerGroups([]string{group})
		if err != nil || groups[0].State != "Stable" || len(groups[0].Members) != 2 {
			return false
		}
		assigned := 0
		for _, member := range groups[0].Members {
			assignment, err := member.GetMemberAssignment()
			require.NoError(t, err)
			if assignment != nil {
				for _, partitions := range assignment.Topics {
					assigned += len(partitions)
				}
			}
		}
		return assigned == 1
	})
}

type record struct {
	mu    sync.Mutex
	byKey map[string][]string
	seen  map[string]bool
	want  int
	all   chan struct{}
}

func (r *record) add(msg *message.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := msg.Metadata["record_key"]
	r.byKey[key] = append(r.byKey[key], msg.UUID)
	if !r.seen[msg.UUID] {
		r.seen[msg.UUID] = true
		if len(r.seen) == r.want {
			go func() { r.all <- struct{}{} }()
		}
	}
}
