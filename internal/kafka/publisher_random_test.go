package kafka_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// TestNothingIsLostOrInvertedByAnyAnswer publishes as a relay does, with a random fault before each call.
func TestNothingIsLostOrInvertedByAnyAnswer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			cluster, brokers := kafkatest.Fake(t)
			topic := kafkatest.Topic(t, brokers, 3)
			publisher := newPublisher(t, kafka.Config{
				Brokers: brokers, MaxMessageBytes: 2000,
				PublishTimeout: 2 * time.Second, RetryFor: 120 * time.Millisecond,
			})
			msgs := events(600, keys(25)...)
			pending, failedCalls := msgs, 0
			for len(pending) > 0 {
				fault := randomFault(random, cluster)
				batch := pending[:min(40, len(pending))]
				err := publisher.Publish(topic, batch...)
				fault()
				if err == nil {
					pending = pending[len(batch):]
					continue
				}
				failedCalls++
				pending = append(unsent(t, err, batch), pending[len(batch):]...)
			}
			require.Positive(t, failedCalls, "the faults must have hurt")
			byKey := logOf(t, brokers, topic, len(msgs))
			requireOrder(t, msgs, byKey)
			t.Logf("%d calls failed, %d duplicates", failedCalls, count(byKey)-len(msgs))
		})
	}
}

func randomFault(random *rand.Rand, cluster *kfake.Cluster) (repair func()) {
	answers := []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.RequestTimedOut, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend,
		kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.UnknownServerError, kerr.KafkaStorageError,
	}
	times := []int{1, 1, 2, -1}[random.IntN(4)]
	switch random.IntN(4) {
	case 0:
		return func() {}
	case 1: // the connection is cut before the broker works on the request
		var repaired atomic.Bool
		cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			if times--; repaired.Load() || times == 0 {
				cluster.DropControl()
			} else {
				cluster.KeepControl()
			}
			if repaired.Load() {
				return nil, nil, false
			}
			return nil, errors.New("cut"), true
		})
		return func() { repaired.Store(true) }
	default:
		fault := kfake.Fault{Keys: produce, Err: answers[random.IntN(len(answers))], Count: times}
		if random.IntN(2) == 0 {
			fault.Partitions = []int32{random.Int32N(3)}
		}
		return cluster.Fault(fault).Remove
	}
}

func count(byKey map[string][]string) (n int) {
	for _, ids := range byKey {
		n += len(ids)
	}
	return n
}
