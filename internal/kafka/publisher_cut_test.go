package kafka_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/twinbox/internal/kafka"
	"example.com/twinbox/test/kafkatest"
)

// wire cuts connections at a byte, which the broker's faults cannot do.
type wire struct {
	loseAnswers atomic.Int32 // answers to drop with their connections
	cutRequests atomic.Int32 // requests to cut in the middle
	cuts        atomic.Int32
}

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

type wiredConn struct {
	net.Conn
	wire *wire
}

var errCut = errors.New("cut")

func (c wiredConn) Write(p []byte) (int, error) {
	if c.wire.loseAnswers.Add(-1) >= 0 {
		c.wire.cuts.Add(1)
		_ = c.Close()
		return 0, errCut
	}
	return c.Conn.Write(p)
}

func (c wiredConn) Read(p []byte) (int, error) {
	const part = 200
	if len(p) > part && c.wire.cutRequests.Load() > 0 {
		n, _ := c.Conn.Read(p[:part])
		if c.wire.cutRequests.Add(-1) >= 0 {
			c.wire.cuts.Add(1)
			_ = c.Close()
			return n, errCut
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

func TestAConnectionCutCostsNothing(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*wire){
		"answer lost":        func(w *wire) { w.loseAnswers.Store(2) },
		"cut in the request": func(w *wire) { w.cutRequests.Store(2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{}
			_, brokers := kafkatest.Fake(t, wrapConnections(func(c net.Conn) net.Conn { return wiredConn{c, w} }))
			topic := kafkatest.Topic(t, brokers, 2)
			publisher := newPublisher(t, kafka.Config{Brokers: brokers, RequestTimeout: time.Second})
			msgs := events(80, keys(10)...)
			require.NoError(t, publisher.Publish(topic, msgs[:40]...))
			cut(w)
			require.NoError(t, publisher.Publish(topic, msgs[40:]...))
			require.EqualValues(t, 2, w.cuts.Load())
			require.Equal(t, sent(msgs...), logOf(t, brokers, topic, len(msgs)))
		})
	}
}
