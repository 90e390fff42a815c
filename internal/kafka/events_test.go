package kafka_test

import (
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

func events(n int, keys ...string) []*message.Message {
	msgs := make([]*message.Message, n)
	for i := range msgs {
		msgs[i] = newEvent(keys[i%len(keys)], i/len(keys)+1)
	}
	return msgs
}

func keys(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("key-%03d", i)
	}
	return names
}

// start can be called again after the broker closed: same address, same data.
func restartable(t testing.TB) (start func() (*kfake.Cluster, []string)) {
	t.Helper()
	_, port, err := net.SplitHostPort(testkit.ReservePort(t))
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	dir := t.TempDir()
	return func() (*kfake.Cluster, []string) { return kafkatest.Fake(t, kfake.DataDir(dir), kfake.Ports(number)) }
}

func idsOf(msgs []*message.Message) []string {
	ids := make([]string, len(msgs))
	for i, msg := range msgs {
		ids[i] = msg.UUID
	}
	return ids
}

func logOf(t testing.TB, brokers []string, topic string, n int) map[string][]string {
	t.Helper()
	byKey := map[string][]string{}
	for _, record := range kafkatest.ReadAll(t, brokers, topic, n) {
		byKey[string(record.Key)] = append(byKey[string(record.Key)], string(record.Headers[0].Value))
	}
	return byKey
}

func sent(msgs ...*message.Message) map[string][]string {
	byKey := map[string][]string{}
	for _, msg := range msgs {
		byKey[msg.Metadata["record_key"]] = append(byKey[msg.Metadata["record_key"]], msg.UUID)
	}
	return byKey
}

// requireOrder: no message is missing, and the first occurrences of every key are in order.
func requireOrder(t *testing.T, msgs []*message.Message, byKey map[string][]string) {
	t.Helper()
	firsts := map[string][]string{}
	for key, ids := range byKey {
		seen := map[string]bool{}
		for _, id := range ids {
			if !seen[id] {
				firsts[key] = append(firsts[key], id)
			}
			seen[id] = true
		}
	}
	require.Equal(t, sent(msgs...), firsts)
}
