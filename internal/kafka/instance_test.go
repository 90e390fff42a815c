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
)

const (
	childBrokers  = "TWINBOX_TEST_CHILD_BROKERS"
	childTopic    = "TWINBOX_TEST_CHILD_TOPIC"
	childGroup    = "TWINBOX_TEST_CHILD_GROUP"
	childInstance = "TWINBOX_TEST_CHILD_INSTANCE"
	childSession  = "TWINBOX_TEST_CHILD_SESSION"
)

func beAMember() {
	cfg := batches(strings.Split(os.Getenv(childBrokers), ","), os.Getenv(childGroup))
	cfg.InstanceID = os.Getenv(childInstance)
	cfg.SessionTimeout, _ = time.ParseDuration(os.Getenv(childSession))
	consumer, err := kafka.NewConsumer(cfg, func(_ context.Context, batch []*message.Message) (int, error) {
		for _, msg := range batch {
			_, _ = os.Stdout.WriteString(msg.UUID + "\n")
		}
		return len(batch), nil
	}, nil)
	if err == nil {
		err = consumer.Run(context.Background(), os.Getenv(childTopic))
	}
	_, _ = fmt.Fprintln(os.Stderr, "member ended:", err)
}

func killedMember(t testing.TB, cfg kafka.ConsumerConfig, topic string) {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path, "-test.run=^$")
	cmd.Env = append(os.Environ(), childBrokers+"="+strings.Join(cfg.Brokers, ","), childTopic+"="+topic,
		childGroup+"="+cfg.Group, childInstance+"="+cfg.InstanceID, childSession+"="+cfg.SessionTimeout.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "a-1\n", line)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "killed")
}

func takeover(t testing.TB, brokers []string, instance string, session time.Duration) time.Duration {
	t.Helper()
	topic, _ := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.InstanceID, cfg.SessionTimeout = instance, session
	killedMember(t, cfg, topic)
	killed := time.Now()
	require.NoError(t, newPublisher(t, kafka.Config{Brokers: brokers}).Publish(topic, newEvent("a", 2)))
	handle, calls := byHand()
	r := consume(t, cfg, topic, handle)
	c := receive(t, calls)
	took := time.Since(killed)
	c.reply <- result{len(c.batch), nil}
	r.stop()
	require.NoError(t, receive(t, r.ended))
	return took
}

func TestASuccessorTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	with := takeover(t, brokers, "a", 4*kafkatest.Patience) // the session outlasts the test's patience
	without := takeover(t, brokers, "", 6*time.Second)
	t.Logf("first message of the successor after kill -9: %s with an instance id, %s without (session timeout 6s)",
		with.Round(time.Millisecond), without.Round(time.Millisecond))
	require.Greater(t, without, time.Second)
}

func TestTwoMembersWithOneInstanceID(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	topic, ids := published(t, brokers, 1)
	cfg := batches(brokers, kafkatest.Group(t))
	cfg.InstanceID, cfg.DrainTimeout = "same", 200*time.Millisecond
	handle, calls := byHand()
	first := consume(t, cfg, topic, handle)
	working := receive(t, calls)
	laterHandle, laterCalls := byHand()
	later := consume(t, cfg, topic, laterHandle)
	err := receive(t, first.ended)
	require.ErrorIs(t, err, kafka.ErrFenced)
	require.ErrorIs(t, first.Healthy(t.Context()), err)
	require.Error(t, working.ctx.Err())
	require.Equal(t, ids, receive(t, laterCalls).ids())
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
		handle, calls := byHand()
		r := consume(t, cfg, topic, handle)
		receive(t, calls).reply <- result{1, nil}
		r.stop()
		require.NoError(t, receive(t, r.ended))
	}
	leave("one")
	leave("another")
}
