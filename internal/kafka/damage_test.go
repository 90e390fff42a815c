package kafka_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/test/kafkatest"
	"example.com/twinbox/test/testkit"
)

// rotten flips a byte of each answer with its word, as a bad disk does after the broker's check.
type rotten struct{ word string }

func (r rotten) listen(network, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), network, address)
	return rottenListener{listener, r}, err
}

type rottenListener struct {
	net.Listener
	rotten
}

func (l rottenListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return rottenConn{conn, l.rotten}, err
}

type rottenConn struct {
	net.Conn
	rotten
}

func (c rottenConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.word)) {
		p = bytes.ReplaceAll(p, []byte(c.word), []byte(strings.ToUpper(c.word)))
	}
	return c.Conn.Write(p)
}

func TestADamagedBatchIsSaid(t *testing.T) {
	t.Parallel()
	_, brokers := kafkatest.Fake(t, kfake.ListenFn(rotten{"rotten apple"}.listen))
	topic := kafkatest.Topic(t, brokers, 1)
	toPartition(t, brokers, topic, 0, "rotten apple")
	cfg := fast(brokers, kafkatest.Group(t))
	cfg.UnhealthyAfter = 300 * time.Millisecond
	l := listen(t, cfg, topic)
	testkit.Until(t, func() bool {
		err := l.Healthy(t.Context())
		return err != nil && strings.Contains(err.Error(), topic+"/0: cannot be read")
	})
	require.ErrorContains(t, l.Healthy(t.Context()), "kafka_damaged")
	require.Empty(t, l.messages)
}
