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

type wrappingListener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrappingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(conn), nil
}

func wrapConnections(wrap func(net.Conn) net.Conn) kfake.Opt {
	return kfake.ListenFn(func(network, address string) (net.Listener, error) {
		listener, err := new(net.ListenConfig).Listen(context.Background(), network, address)
		return wrappingListener{listener, wrap}, err
	})
}

// As a bad disk, after the broker's check.
type rottenConn struct {
	net.Conn
	word string
}

func (c rottenConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.word)) {
		p = bytes.ReplaceAll(p, []byte(c.word), []byte(strings.ToUpper(c.word)))
	}
	return c.Conn.Write(p)
}

func TestADamagedBatchIsSaid(t *testing.T) {
	t.Parallel()
	const word = "rotten apple"
	_, brokers := kafkatest.Fake(t, wrapConnections(func(c net.Conn) net.Conn { return rottenConn{c, word} }))
	topic := kafkatest.Topic(t, brokers, 1)
	toPartition(t, brokers, topic, 0, word)
	cfg := singles(brokers, kafkatest.Group(t))
	cfg.UnhealthyAfter = 300 * time.Millisecond
	m := join(t, cfg, topic)
	testkit.Until(t, func() bool {
		err := m.Healthy(t.Context())
		return err != nil && strings.Contains(err.Error(), topic+"/0: cannot be read")
	})
	require.ErrorContains(t, m.Healthy(t.Context()), "kafka_damaged")
}
