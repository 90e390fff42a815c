package kafka_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

const (
	childBrokers  = "TWINBOX_TEST_CHILD_BROKERS"
	childTopic    = "TWINBOX_TEST_CHILD_TOPIC"
	childGroup    = "TWINBOX_TEST_CHILD_GROUP"
	childInstance = "TWINBOX_TEST_CHILD_INSTANCE"
	childSession  = "TWINBOX_TEST_CHILD_SESSION"
	childHolds    = "TWINBOX_TEST_CHILD_HOLDS"
)

func beAMember() {
	cfg := batches(strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childGroup))
	cfg.InstanceID = os.Getenv(childInstance)
	cfg.SessionTimeout, _ = time.ParseDuration(os.Getenv(childSession))
	consumer, err := kafka.NewConsumer(cfg, func(_ context.Context, batch []*message.Message) (int, error) {
		for _, msg := range batch {
			_, _ = os.Stdout.WriteString(msg.UUID + "\n")
		}
		if os.Getenv(childHolds) != "" {
			select {} // until it is killed
		}
		return len(batch), nil
	}, nil)
	if err == nil {
		err = consumer.Run(context.Background(), os.Getenv(childTopic))
	}
	_, _ = fmt.Fprintln(os.Stderr, "member ended:", err)
}

// startMember starts a member in a process, which prints the ids that it gets.
func startMember(
	t testing.TB, cfg kafka.ConsumerConfig, topic string, environ ...string,
) (process *exec.Cmd, lines <-chan string) {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	process = exec.CommandContext(t.Context(), path, "-test.run=^$")
	process.Env = append(append(os.Environ(), childBrokers+"="+strings.Join(cfg.Brokers, ","), childTopic+"="+topic,
		childGroup+"="+cfg.Group, childInstance+"="+cfg.InstanceID, childSession+"="+cfg.SessionTimeout.String()), environ...)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	printed := make(chan string, 10)
	go func() {
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			printed <- scanner.Text()
		}
	}()
	return process, printed
}

func killMember(t testing.TB, process *exec.Cmd) {
	t.Helper()
	require.NoError(t, process.Process.Kill())
	require.Error(t, process.Wait(), "killed")
}

func TestASuccessorTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.InstanceID, cfg.SessionTimeout = "a", 4*kafkatest.Patience // it outlasts the test's patience
	process, lines := startMember(t, cfg, topic)
	require.Equal(t, "a-1", receive(t, lines))
	killMember(t, process)
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, newEvent("a", 2)))
	receive(t, join(t, cfg, topic).calls).ack()
}

func TestTwoMembersWithOneInstanceID(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.InstanceID, cfg.DrainTimeout = "same", 14*time.Second
	first := join(t, cfg, topic)
	working := receive(t, first.calls)
	later := join(t, cfg, topic)
	began := time.Now()
	err := receive(t, first.ended)
	require.ErrorIs(t, err, kafka.ErrFenced)
	require.Less(t, time.Since(began), cfg.DrainTimeout, "a lost membership has no drain")
	require.ErrorIs(t, first.Healthy(t.Context()), err)
	require.Error(t, working.ctx.Err())
	require.Equal(t, ids, receive(t, later.calls).ids())
	require.NoError(t, later.Healthy(t.Context()))
}

func TestAMemberWithAnInstanceIDLeavesWhenItCloses(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, _ := published(t, brokers, 2)
	group := kafkatest.Group(t)
	leave := func(id string) {
		cfg := batches(brokers, group)
		cfg.InstanceID, cfg.Batch, cfg.DrainTimeout = id, 1, 200*time.Millisecond
		cfg.SessionTimeout = 4 * kafkatest.Patience
		m := join(t, cfg, topic)
		m.read(t, 1)
		m.close()
	}
	leave("one")
	leave("another")
}

// Two members are killed in the middle of a rebalance: the first has given a partition back, and has not yet begun the
// next rebalance, which would give it to the other. The broker in process begins one when they come back.
func TestAPartitionBetweenTwoOwnersIsNotForgotten(t *testing.T) {
	t.Parallel()
	if !kafkatest.IsReal() {
		t.Skip("needs a real coordinator: make test-kafka runs it")
	}
	brokers := kafkatest.Brokers(t)
	topic := kafkatest.Topic(t, brokers, 2)
	toPartition(t, brokers, topic, 0, "x")
	toPartition(t, brokers, topic, 1, "x")
	first := batches(brokers, kafkatest.Group(t))
	first.SessionTimeout, first.LookEvery = 4*kafkatest.Patience, 100*time.Millisecond
	second := first
	first.InstanceID, second.InstanceID = "first", "second"

	working, got := startMember(t, first, topic, childHolds+"=yes")
	receive(t, got)
	receive(t, got)
	idle, _ := startMember(t, second, topic)
	testkit.Until(t, func() bool {
		owners, err := kafka.ReadOwners(t.Context(), first.Config, first.Group, topic)
		return err == nil && owners.State == kafka.Stable && len(owners.By) == 1
	})
	killMember(t, working)
	killMember(t, idle)

	handled := make(chan int32)
	handle := func(ctx context.Context, batch []*message.Message) (int, error) {
		select {
		case handled <- placeOf(batch[0]).Partition:
		case <-ctx.Done():
		}
		return len(batch), nil
	}
	consume(t, first, topic, handle, nil)
	consume(t, second, topic, handle, nil)
	for of := map[int32]bool{}; len(of) < 2; {
		of[receive(t, handled)] = true
	}
}
