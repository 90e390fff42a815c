package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka/consumer"
	"example.com/twinbox/internal/kafka/progress"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// mute answers sarama's own fetches of the topic with nothing, as if all were read. The look at the log asks for one
// byte, which tells it apart, and is announced on the channel.
func mute(cluster *kfake.Cluster) (looks <-chan struct{}) {
	looked := make(chan struct{}, 1000)
	cluster.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].PartitionMaxBytes == 1 {
			select {
			case looked <- struct{}{}:
			default:
			}
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range req.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				partition := kmsg.NewFetchResponseTopicPartition()
				partition.Partition, partition.RecordBatches = p.Partition, []byte{}
				topic.Partitions = append(topic.Partitions, partition)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	return looked
}

// TestAPartitionThatIsSilentlyNotReadStopsTheConsumer: first it is unhealthy by name, then Run ends.
func TestAPartitionThatIsSilentlyNotReadStopsTheConsumer(t *testing.T) {
	t.Parallel()
	cluster, brokers := kafkatest.Fake(t)
	topic, _ := published(t, brokers, 1)
	looks := mute(cluster)
	cfg := batches(brokers, kafkatest.Group(t))
	clock := watched(&cfg)
	r := consume(t, cfg, topic, collect(make(chan got, 1)))
	for range 3 { // what the first one found is noted when the next one begins
		receive(t, looks)
	}
	clock.pass(t, cfg.UnhealthyAfter+time.Second)
	unhealthy := r.Healthy(t.Context())
	require.ErrorIs(t, unhealthy, consumer.ErrStalled)
	require.ErrorContains(t, unhealthy, topic+"/0")
	require.ErrorContains(t, unhealthy, "offset 0 can be read")
	require.Empty(t, r.ended)
	clock.add(cfg.StopAfter)
	stall := receive(t, r.ended)
	require.ErrorIs(t, stall, consumer.ErrStalled)
	require.ErrorContains(t, stall, "no progress for "+(cfg.UnhealthyAfter+time.Second+cfg.StopAfter).String())
}

// TestAHandlerThatDoesNotReturnStopsTheConsumer: within its limit it is progress, behind it a stall.
func TestAHandlerThatDoesNotReturnStopsTheConsumer(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.HandlerLimit, cfg.DrainTimeout = time.Hour, 50*time.Millisecond
	clock := watched(&cfg)
	handle, calls := byHand()
	r := consume(t, cfg, topic, handle)
	working := receive(t, calls)
	clock.pass(t, cfg.HandlerLimit)
	require.NoError(t, r.Healthy(t.Context()))
	clock.pass(t, cfg.StopAfter)
	require.ErrorContains(t, r.Healthy(t.Context()), "the handler has not returned for 1h5m0s")
	require.Empty(t, r.ended)
	clock.add(time.Second)
	err := receive(t, r.ended)
	require.ErrorIs(t, err, consumer.ErrStalled)
	require.ErrorContains(t, err, "the handler has not returned")
	require.Error(t, working.ctx.Err())
}

// TestAHandlerThatKeepsFailingIsUnhealthyAndGoesOn: what it needs is down, and a restart would not help.
func TestAHandlerThatKeepsFailingIsUnhealthyAndGoesOn(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.HandlerLimit, cfg.NackBackoff = time.Hour, time.Millisecond
	clock := watched(&cfg)
	handle, calls := byHand()
	r := consume(t, cfg, topic, handle)
	down := errors.New("database is down")
	for range 10 {
		working := receive(t, calls)
		clock.pass(t, cfg.StopAfter)
		working.reply <- result{0, down}
	}
	last := receive(t, calls)
	require.ErrorIs(t, r.Healthy(t.Context()), down)
	require.Empty(t, r.ended)
	last.reply <- result{1, nil}
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
}

// TestAHandlerThatPausesIsUnhealthyAndGoesOn: within one call, for as long as the outage lasts.
func TestAHandlerThatPausesIsUnhealthyAndGoesOn(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	clock := watched(&cfg)
	long := 2 * (cfg.WithDefaults().HandlerLimit + cfg.StopAfter)
	calls, returned := make(chan context.Context), make(chan struct{})
	r := consume(t, cfg, topic, func(ctx context.Context, batch []*message.Message) (int, error) {
		calls <- ctx
		<-returned
		return len(batch), nil
	})
	ctx := receive(t, calls)
	resume := progress.Pausing(ctx, nil)
	clock.pass(t, long)
	require.NoError(t, r.Healthy(t.Context()), "waiting is no failure")
	resume()
	down := errors.New("database is down")
	for range 3 {
		resume = progress.Pausing(ctx, down)
		clock.pass(t, long)
		require.ErrorIs(t, r.Healthy(t.Context()), down)
		resume()
		clock.pass(t, cfg.StopAfter)
	}
	require.Empty(t, r.ended)
	close(returned)
	testkit.Until(t, func() bool { return r.Healthy(t.Context()) == nil })
	progress.Pausing(t.Context(), down)() // outside a call: it has no effect
}

// TestAHandlerThatFailsIsUnhealthySoon: sooner than a partition that makes no progress, which may pass by itself; and
// no longer than it fails, although the call goes on.
func TestAHandlerThatFailsIsUnhealthySoon(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	clock := watched(&cfg)
	calls, returned := make(chan context.Context), make(chan struct{})
	r := consume(t, cfg, topic, func(ctx context.Context, batch []*message.Message) (int, error) {
		calls <- ctx
		<-returned
		return len(batch), nil
	})
	ctx := receive(t, calls)
	down := errors.New("a bug")
	for range 2 {
		progress.Pausing(ctx, down)()
		clock.pass(t, cfg.UnhealthyAfter/3)
		require.NoError(t, r.Healthy(t.Context()))
		clock.pass(t, time.Millisecond)
		require.ErrorIs(t, r.Healthy(t.Context()), down)
		progress.Pausing(ctx, nil)()
		require.NoError(t, r.Healthy(t.Context()), "another one went well")
	}
	close(returned)
}
