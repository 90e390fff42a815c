package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
)

type fakeSession struct{ sarama.ConsumerGroupSession }

func (fakeSession) Context() context.Context                    { return context.Background() }
func (fakeSession) MarkMessage(*sarama.ConsumerMessage, string) {}

type fakeClaim struct {
	sarama.ConsumerGroupClaim
	records chan *sarama.ConsumerMessage
}

func (fakeClaim) Topic() string                              { return "topic" }
func (fakeClaim) Partition() int32                           { return 3 }
func (fakeClaim) InitialOffset() int64                       { return 0 }
func (fakeClaim) HighWaterMarkOffset() int64                 { return 1 }
func (c fakeClaim) Messages() <-chan *sarama.ConsumerMessage { return c.records }

// sarama asks brokers for offsets between an assignment and the start of its claims: the next one may come first.
func TestAPartitionThatMovesBeforeItsClaimStarts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		assigned []int32
		handled  int
	}{
		"kept": {[]int32{1, 3}, 1}, "moved": {[]int32{1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handled := 0
			consumer, err := NewConsumer(ConsumerConfig{Config: Config{Brokers: []string{"none:1"}}, Group: "group"},
				func(_ context.Context, batch []*message.Message) (int, error) {
					handled += len(batch)
					return len(batch), nil
				}, nil)
			require.NoError(t, err)
			consumer.ctx, consumer.topic = t.Context(), "topic"
			watched := watchedStrategy{sarama.NewBalanceStrategyCooperativeSticky().(cooperative), consumer}
			topics := map[string][]int32{"topic": c.assigned}
			watched.OnAssignment(&sarama.ConsumerGroupMemberAssignment{Topics: topics}, 1)
			claim := fakeClaim{records: make(chan *sarama.ConsumerMessage, 1)}
			claim.records <- &sarama.ConsumerMessage{Topic: "topic", Partition: 3}
			close(claim.records)
			require.NoError(t, (&groupHandler{consumer: consumer}).ConsumeClaim(fakeSession{}, claim))
			require.Equal(t, c.handled, handled)
		})
	}
}

func TestACallThatIgnoresItsEndIsUnhealthy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		consumer, err := NewConsumer(ConsumerConfig{Config: Config{Brokers: []string{"none:1"}}, Group: "group"}, nil, nil)
		require.NoError(t, err)
		consumer.ctx, consumer.joined = t.Context(), time.Now()
		p := newClaim(consumer, fakeSession{}, fakeClaim{})
		consumer.claims[3] = p
		p.begin()
		<-time.After(90 * time.Second)
		require.NoError(t, consumer.Healthy(t.Context()), "the handler is slow")
		<-time.After(time.Second)
		require.EqualError(t, consumer.Healthy(t.Context()),
			"consume topic/3: one call of the handler has been running for 1m31s")
		resume := Pausing(p.ctx, nil)
		require.NoError(t, consumer.Healthy(t.Context()))
		<-time.After(time.Hour)
		require.NoError(t, consumer.Healthy(t.Context()), "it waits, such as for its database")
		resume()
		require.NoError(t, consumer.Healthy(t.Context()), "the next attempt has begun")
	})
}
